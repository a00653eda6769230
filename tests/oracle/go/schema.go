package main

import (
	"bufio"
	"encoding/json"
	"io"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
)

// entry describes one JSON field of a Go struct: what the merge has to know about it, and nothing else.
type entry struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`               // string, bool, int32, …, struct:<name>, list:<kind>, map:<kind>
	Pointer  bool   `json:"pointer,omitempty"`  // a pointer keeps its zero value when it is written again
	Omit     string `json:"omit,omitempty"`     // empty or zero: left out when written again; "": always written
	Strategy string `json:"strategy,omitempty"` // patchStrategy of the strategic merge patch
	Key      string `json:"key,omitempty"`      // patchMergeKey
}

var leaves = map[reflect.Type]string{
	reflect.TypeOf(resource.Quantity{}):       "quantity",
	reflect.TypeOf(intstr.IntOrString{}):      "intOrString",
	reflect.TypeOf(metav1.Time{}):             "time",
	reflect.TypeOf(metav1.MicroTime{}):        "time",
	reflect.TypeOf(metav1.Duration{}):         "duration",
	reflect.TypeOf(metav1.FieldsV1{}):         "any",
	reflect.TypeOf(apiruntime.RawExtension{}): "any",
	reflect.TypeOf([]byte{}):                  "bytes",
}

// dumpSchema writes each struct with its fields in the order of their declaration, which is the order Go writes them in.
func dumpSchema(w io.Writer) {
	structs := map[string][]entry{}
	for _, root := range []any{trainer.TrainJob{}, trainer.ClusterTrainingRuntime{}} {
		describe(reflect.TypeOf(root), structs)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	_ = encoder.Encode(structs)
}

func describe(t reflect.Type, structs map[string][]entry) {
	name := structName(t)
	if _, seen := structs[name]; seen {
		return
	}
	structs[name] = nil // a struct that holds itself ends here
	structs[name] = collect(t, structs)
}

func collect(t reflect.Type, structs map[string][]entry) []entry {
	fields := []entry{}
	for i := range t.NumField() {
		f := t.Field(i)
		jsonName, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if jsonName == "-" {
			continue
		}
		if f.Anonymous && (jsonName == "" || strings.Contains(options, "inline")) && jsonName == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			fields = append(fields, collect(inner, structs)...)
			continue
		}
		e := entry{Name: jsonName, Strategy: f.Tag.Get("patchStrategy"), Key: f.Tag.Get("patchMergeKey")}
		switch {
		case strings.Contains(options, "omitzero"):
			e.Omit = "zero"
		case strings.Contains(options, "omitempty"):
			e.Omit = "empty"
		}
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			e.Pointer = true
			ft = ft.Elem()
		}
		e.Kind = kindOf(ft, structs)
		fields = append(fields, e)
	}
	return fields
}

func kindOf(t reflect.Type, structs map[string][]entry) string {
	if leaf, ok := leaves[t]; ok {
		return leaf
	}
	switch t.Kind() {
	case reflect.Struct:
		describe(t, structs)
		return "struct:" + structName(t)
	case reflect.Slice:
		return "list:" + kindOf(deref(t.Elem()), structs)
	case reflect.Map:
		return "map:" + kindOf(deref(t.Elem()), structs)
	default:
		return t.Kind().String()
	}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// structName keeps the last part of the package, which is enough to tell v1 pods from v1alpha2 JobSets apart.
func structName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	if len(parts) > 2 {
		parts = parts[len(parts)-2:]
	}
	return strings.Join(parts, ".") + "." + t.Name()
}

// answerQuantities reads one quantity a line and writes [canonical text, Value()] or null when it cannot be parsed.
func answerQuantities(r io.Reader, w io.Writer) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 1<<20), 1<<20)
	out := bufio.NewWriter(w)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for in.Scan() {
		var texts []string
		if err := json.Unmarshal(in.Bytes(), &texts); err != nil {
			_ = encoder.Encode(nil)
			continue
		}
		_ = encoder.Encode(sum(texts))
	}
}

// sum adds the quantities of a line after the first in order; a line of one only parses and prints.
func sum(texts []string) any {
	var total resource.Quantity
	for i, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil
		}
		if i == 0 {
			total = q
			continue
		}
		total.Add(q)
	}
	return []any{total.String(), total.Value()}
}

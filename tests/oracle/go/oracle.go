// The oracle: Kubeflow Trainer's own admission and merge code, fed with JSON lines instead of a cluster.
//
// Each input line is {"runtime": …, "trainJob": …}. The answer is one line:
//
//	{"errors": [{"field", "type", "detail"}, …]}   what the validating webhook says
//	{"objects": […]}                               what the controller would apply
//	{"error": "…"}                                 the controller's own code gave up while building
//	{"panic": "…"}                                 the controller's own code crashed
//	{"undecodable": "…"}                           the input does not fit the Go types: the API server refuses it earlier
//
// The client below holds that one runtime and nothing else, so an answer depends on its line alone.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kjson "sigs.k8s.io/json"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	"github.com/kubeflow/trainer/v2/pkg/runtime"
)

type pair struct {
	Runtime  json.RawMessage `json:"runtime"`
	TrainJob json.RawMessage `json:"trainJob"`
}

type fieldError struct {
	Field  string `json:"field"`
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

// oneRuntime answers Get for the runtime of the current line and NotFound for all else; nothing is stored.
type oneRuntime struct {
	client.Client
	scheme  *apiruntime.Scheme
	cluster *trainer.ClusterTrainingRuntime
	local   *trainer.TrainingRuntime
}

func (c *oneRuntime) Scheme() *apiruntime.Scheme  { return c.scheme }
func (c *oneRuntime) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

func (c *oneRuntime) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	group, resource := "", ""
	switch o := obj.(type) {
	case *trainer.ClusterTrainingRuntime:
		if c.cluster != nil && c.cluster.Name == key.Name {
			c.cluster.DeepCopyInto(o)
			return nil
		}
		group, resource = trainer.GroupVersion.Group, "clustertrainingruntimes"
	case *trainer.TrainingRuntime:
		if c.local != nil && c.local.Name == key.Name && c.local.Namespace == key.Namespace {
			c.local.DeepCopyInto(o)
			return nil
		}
		group, resource = trainer.GroupVersion.Group, "trainingruntimes"
	case *schedulingv1.PriorityClass:
		group, resource = schedulingv1.GroupName, "priorityclasses"
	case *jobsetv1alpha2.JobSet:
		group, resource = jobsetv1alpha2.GroupVersion.Group, "jobsets"
	case *corev1.Secret:
		resource = "secrets"
	case *corev1.ConfigMap:
		resource = "configmaps"
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, key.Name)
}

func (c *oneRuntime) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
func (c *oneRuntime) Apply(context.Context, apiruntime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

// noIndexes stands where a manager would keep its field indexes.
type noIndexes struct{}

func (noIndexes) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "schema" {
		dumpSchema(os.Stdout)
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "quantities" {
		answerQuantities(os.Stdin, os.Stdout)
		return
	}
	ctx := ctrl.LoggerInto(context.Background(), logr.Discard())
	ctrl.SetLogger(logr.Discard())
	c := &oneRuntime{scheme: apiruntime.NewScheme()}
	runtimes, err := newRuntimes(ctx, c, noIndexes{})
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle: the controller's runtimes cannot be set up:", err)
		os.Exit(1)
	}
	if len(os.Args) > 1 && os.Args[1] == "bench" {
		bench(ctx, c, runtimes)
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if encodeErr := encoder.Encode(answer(ctx, c, runtimes, line)); encodeErr != nil {
				_ = encoder.Encode(map[string]any{"error": encodeErr.Error()})
			}
		}
		if in.Buffered() == 0 || err != nil {
			out.Flush()
		}
		if err != nil {
			return
		}
	}
}

func answer(ctx context.Context, c *oneRuntime, runtimes map[string]runtime.Runtime, line []byte) (result map[string]any) {
	defer func() {
		if p := recover(); p != nil {
			result = map[string]any{"panic": fmt.Sprint(p)}
		}
	}()
	trainJob, err := load(c, line)
	if err != nil {
		return map[string]any{"undecodable": err.Error()}
	}
	return decide(ctx, runtimes, trainJob)
}

// decide is what a benchmark times: admission, then the merge.
func decide(ctx context.Context, runtimes map[string]runtime.Runtime, trainJob *trainer.TrainJob) map[string]any {
	fillIn(&trainJob.Spec.RuntimeRef.APIGroup, trainer.GroupVersion.Group)
	fillIn(&trainJob.Spec.RuntimeRef.Kind, trainer.ClusterTrainingRuntimeKind)
	key := runtime.RuntimeRefToRuntimeRegistryKey(trainJob.Spec.RuntimeRef)
	run, ok := runtimes[key]
	if !ok { // the webhook returns this as a plain error, outside any field
		return errorsOf(field.ErrorList{field.Invalid(field.NewPath("spec", "runtimeRef"), nil, "unsupported runtime: "+key)})
	}
	if _, errs := run.ValidateObjects(ctx, nil, trainJob); len(errs) > 0 {
		return errorsOf(errs)
	}
	objects, err := run.NewObjects(ctx, trainJob)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"objects": objects}
}

// bench reads all pairs first and then times one pass over them, without reading or writing JSON.
func bench(ctx context.Context, c *oneRuntime, runtimes map[string]runtime.Runtime) {
	type loaded struct {
		job     *trainer.TrainJob
		cluster *trainer.ClusterTrainingRuntime
		local   *trainer.TrainingRuntime
	}
	var pairs []loaded
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			if job, loadErr := load(c, line); loadErr == nil {
				pairs = append(pairs, loaded{job, c.cluster, c.local})
			}
		}
		if err != nil {
			break
		}
	}
	start := time.Now()
	for _, p := range pairs {
		c.cluster, c.local = p.cluster, p.local
		func() {
			defer func() { _ = recover() }()
			decide(ctx, runtimes, p.job)
		}()
	}
	seconds := time.Since(start).Seconds()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"pairs": len(pairs), "seconds": seconds})
}

// fillIn sets what the API server always sets, so that a pair need not spell it out.
func fillIn(value **string, text string) {
	if *value == nil {
		*value = &text
	}
}

// load decodes as the API machinery does (case-sensitive, unknown fields dropped).
func load(c *oneRuntime, line []byte) (*trainer.TrainJob, error) {
	var p pair
	if err := json.Unmarshal(line, &p); err != nil {
		return nil, err
	}
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(p.Runtime, &kind); err != nil {
		return nil, err
	}
	c.cluster, c.local = nil, nil
	if kind.Kind == trainer.TrainingRuntimeKind {
		c.local = &trainer.TrainingRuntime{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Runtime, c.local); err != nil {
			return nil, err
		}
	} else {
		c.cluster = &trainer.ClusterTrainingRuntime{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(p.Runtime, c.cluster); err != nil {
			return nil, err
		}
	}
	trainJob := &trainer.TrainJob{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(p.TrainJob, trainJob); err != nil {
		return nil, err
	}
	return trainJob, nil
}

func errorsOf(errs field.ErrorList) map[string]any {
	list := make([]fieldError, 0, len(errs))
	for _, e := range errs {
		list = append(list, fieldError{Field: e.Field, Type: string(e.Type), Detail: e.Detail})
	}
	return map[string]any{"errors": list}
}

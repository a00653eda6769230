import { python } from "@codemirror/lang-python";
import {
  bracketMatching,
  HighlightStyle,
  indentUnit,
  StreamLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { minimalSetup } from "codemirror";
import { useEffect, useRef } from "react";
import styles from "./CodeEditor.module.css";

export type CodeLanguage = "python" | "shell" | "text";

interface CodeEditorProps {
  label: string;
  value: string;
  language: CodeLanguage;
  onChange: (value: string) => void;
  problem?: string | undefined;
  id?: string;
  isShort?: boolean;
}

// Colours of the page: they follow the theme by themselves.
const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--accent-text)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  {
    tag: [tags.function(tags.variableName), tags.definition(tags.variableName), tags.className],
    color: "var(--info)",
  },
  { tag: [tags.comment, tags.meta], color: "var(--text-3)", fontStyle: "italic" },
]);
const LOOKS = EditorView.theme({
  "&": {
    height: "100%",
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    fontSize: "var(--text-sm)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.55", overflow: "auto" },
  ".cm-content": { padding: "0.5rem 0", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface-2)", color: "var(--text-3)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft) !important",
  },
});

/**
 * Text typed over a selection is put in here and not by the browser: Chromium would join the lines and keep their looks by
 * style="…", which the policy refuses and reports.
 */
const TYPED_OVER = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { inputType, data } = event;
    if (inputType !== "insertText" || data === null || view.composing || view.state.selection.main.empty)
      return false;
    event.preventDefault();
    view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

function languageOf(language: CodeLanguage): Extension {
  if (language === "python") return python();
  return language === "shell" ? StreamLanguage.define(shell) : [];
}

/**
 * Text with line numbers and colours. Tab goes on to the next control, as everywhere; Ctrl-] and Ctrl-[ indent. It
 * lives in a shadow root: there its styles are sheets, which the policy of the page allows, and not elements.
 */
export function CodeEditor({ label, value, language, onChange, problem, id, isShort }: CodeEditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(null);
  const heard = useRef(onChange);
  heard.current = onChange;
  const spoken = useRef(new Compartment());
  const told = useRef(new Compartment());

  // biome-ignore lint/correctness/useExhaustiveDependencies: made once; the effects below bring what changes
  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          minimalSetup,
          lineNumbers(),
          bracketMatching(),
          indentUnit.of("    "),
          syntaxHighlighting(COLOURS),
          LOOKS,
          TYPED_OVER,
          spoken.current.of(languageOf(language)),
          told.current.of(aria(label, problem)),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) heard.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      made.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    const now = view.current;
    // The editor has one kind of line end; a text with others stays as it is until somebody types in it.
    if (!now || now.state.doc.eq(now.state.toText(value))) return;
    now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    view.current?.dispatch({ effects: spoken.current.reconfigure(languageOf(language)) });
  }, [language]);
  useEffect(() => {
    view.current?.dispatch({ effects: told.current.reconfigure(aria(label, problem)) });
  }, [label, problem]);

  const className = [styles.editor, isShort && styles.short, problem && styles.invalid]
    .filter(Boolean)
    .join(" ");
  return <div ref={host} className={className} {...(id ? { id } : {})} />;
}

function aria(label: string, problem: string | undefined): Extension {
  return EditorView.contentAttributes.of({
    // Labels by id do not reach into a shadow root, so what is wrong is part of the name.
    tabindex: "0",
    "aria-label": problem ? `${label}: ${problem}` : label,
    ...(problem ? { "aria-invalid": "true" } : {}),
  });
}

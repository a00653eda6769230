// @vitest-environment node
/**
 * A key that nobody uses fails. The compiler says which there are: it knows that `job.${verb}Title` is one of four keys,
 * where a search for the text could only say that it begins with `job.`.
 */
import { join } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";
import { en } from "./en";

const ROOT = process.cwd();

it("the catalogues hold nothing that is not used", { timeout: 120_000 }, () => {
  const used = usedTexts();
  const unused = Object.entries(en)
    .flatMap(([page, texts]) => Object.keys(texts).map((name) => `${page}.${name}`))
    .filter((key) => !used.has(key) && !used.has(key.replace(/_(one|other)$/, "")));
  expect(unused).toEqual([]);
});

/** Every text that stands in the sources, or that one of their templates can become. */
function usedTexts(): Set<string> {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
  const program = ts.createProgram(fileNames, options);
  const checker = program.getTypeChecker();
  const found = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) found.add(node.text);
    else if (ts.isTemplateExpression(node))
      for (const text of textsOf(checker.getTypeAtLocation(node))) found.add(text);
    ts.forEachChild(node, visit);
  };
  for (const file of program.getSourceFiles()) {
    const isOurs =
      file.fileName.startsWith(join(ROOT, "src")) && !/\/src\/i18n\/|\.test\./.test(file.fileName);
    if (isOurs) visit(file);
  }
  return found;
}

function textsOf(type: ts.Type): string[] {
  const kinds = type.isUnion() ? type.types : [type];
  return kinds.filter((each) => each.isStringLiteral()).map((each) => each.value);
}

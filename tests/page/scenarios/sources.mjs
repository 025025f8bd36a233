// Sources of the page for scenarios without a browser.
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../page/package.json", import.meta.url));

// What these files of page/src export, as one module.
export async function sources(...names) {
  const { outputFiles } = require("esbuild").buildSync({ bundle: true, write: false, format: "esm",
    target: "es2022", stdin: { contents: names.map((name) => `export * from "./${name}";`).join(""),
      resolveDir: new URL("../../../page/src", import.meta.url).pathname } });
  return import(`data:text/javascript;base64,${
    Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

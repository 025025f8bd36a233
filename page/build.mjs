// Bundles the page into a folder: node page/build.mjs <folder>. Run by CMake (cmake/page.cmake).
import { build } from "esbuild";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "../build/page");

// The licence of what is bundled besides our own code must be included.
const uplot = JSON.parse(readFileSync(join(here, "node_modules/uplot/package.json"), "utf8"));
const licence = readFileSync(join(here, "node_modules/uplot/LICENSE"), "utf8");
const notice = `/*\nuPlot ${uplot.version}\n\n${licence.trim()}\n*/`;

// The first frame shows what index.html has, before the script is run: it only has to be read.
const begin = "const page = () => {";
const end = "};\ndocument.hidden ? page() : requestAnimationFrame(() => setTimeout(page));";

mkdirSync(out, { recursive: true });
await build({
  entryPoints: [join(here, "src/app.ts"), join(here, "src/app.css")],
  bundle: true,
  minify: true,
  charset: "utf8",
  format: "iife",
  target: "es2022",
  legalComments: "none",
  banner: { js: begin },
  footer: { js: end },
  outdir: out,
  logLevel: "warning",
});
const script = join(out, "app.js");
writeFileSync(script, `${notice}\n${readFileSync(script, "utf8")}`);
for (const file of ["index.html", "icon.svg"]) copyFileSync(join(here, file), join(out, file));
for (const file of ["index.html", "app.js", "app.css", "icon.svg"]) {
  writeFileSync(join(out, `${file}.gz`), gzipSync(readFileSync(join(out, file)), { level: 9 }));
}

// Runs pytest in Pyodide: node run.mjs CHECKOUT PACKAGES ARGUMENT...
// CHECKOUT is the checkout, PACKAGES a folder with pytest, which must not be compiled.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [checkout, packages, ...words] = process.argv.slice(2);
// The package is beside the working folder, not beside this file.
const entry = createRequire(path.join(process.cwd(), "x")).resolve("pyodide/pyodide.mjs");
const { loadPyodide } = await import(pathToFileURL(entry).href);

const pyodide = await loadPyodide();
pyodide.FS.mkdirTree("/checkout");
pyodide.FS.mkdirTree("/packages");
pyodide.mountNodeFS("/checkout", checkout);
pyodide.mountNodeFS("/packages", packages);
pyodide.globals.set("words", pyodide.toPy(words));
const status = await pyodide.runPythonAsync(`
import os, sys
sys.path[:0] = ["/checkout/src", "/checkout", "/packages"]
sys.dont_write_bytecode = True
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
os.chdir("/checkout")
import pytest
print("Python", sys.version.split()[0])
int(pytest.main(words))
`);
process.exit(status);

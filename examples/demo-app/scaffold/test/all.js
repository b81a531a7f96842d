import { readdir } from "node:fs/promises";

// All of them in one process: they are small, and starting one for each takes longer than they do.
const names = await readdir(import.meta.dirname);
for (const name of names.filter((file) => file.endsWith(".test.js")).sort()) await import(`./${name}`);

/** Stands in for a browser: forwards its arguments and descriptors 3 and 4 to the browser's sandbox. */
import { createReadStream, createWriteStream } from "node:fs";
import { connect } from "node:net";
import { pipeline } from "node:stream";

const [socket = "", ...argv] = process.argv.slice(2);
const browser = connect(socket);
browser.write(`${JSON.stringify(argv)}\n`);
pipeline(createReadStream("", { fd: 3 }), browser, () => {});
pipeline(browser, createWriteStream("", { fd: 4 }), () => process.exit());

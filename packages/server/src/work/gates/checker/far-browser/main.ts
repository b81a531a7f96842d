/** In a browser's place: hands the arguments, and what is said over the descriptors 3 and 4, to the sandbox of the browser. */
import { createReadStream, createWriteStream } from "node:fs";
import { connect } from "node:net";
import { pipeline } from "node:stream";

const [socket = "", ...argv] = process.argv.slice(2);
const browser = connect(socket);
browser.write(`${JSON.stringify(argv)}\n`);
pipeline(createReadStream("", { fd: 3 }), browser, () => {});
pipeline(browser, createWriteStream("", { fd: 4 }), () => process.exit());

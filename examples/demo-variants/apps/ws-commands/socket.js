// As much of RFC 6455 as a small app needs: text, close and ping, also in pieces.
import { createHash } from "node:crypto";

const MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

function encode(opcode, payload) {
  const length = payload.length;
  let head = Buffer.from([0x80 | opcode, length]);
  if (length > 125) {
    head = Buffer.from([0x80 | opcode, length > 65535 ? 127 : 126, ...new Array(length > 65535 ? 8 : 2)]);
    head.writeUIntBE(length, head.length === 10 ? 4 : 2, head.length === 10 ? 6 : 2);
  }
  return Buffer.concat([head, payload]);
}

function decode(buffer) {
  if (buffer.length < 2) return null;
  let start = 2;
  let length = buffer[1] & 127;
  if (length === 126) start = 4;
  if (length === 127) start = 10;
  if (buffer.length < start + 4) return null;
  if (start > 2) length = buffer.readUIntBE(start === 10 ? 4 : 2, start === 10 ? 6 : 2);
  const end = start + 4 + length;
  if (buffer.length < end) return null;
  const mask = buffer.subarray(start, start + 4);
  const payload = Buffer.from(buffer.subarray(start + 4, end)).map((byte, index) => byte ^ mask[index % 4]);
  return { opcode: buffer[0] & 15, last: buffer[0] > 127, payload, rest: buffer.subarray(end) };
}

export function accept(req, socket, { onText, onClose }) {
  const answer = createHash("sha1").update(req.headers["sec-websocket-key"] + MAGIC).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"];
  socket.write(`${[...head, `Sec-WebSocket-Accept: ${answer}`].join("\r\n")}\r\n\r\n`);
  let waiting = Buffer.alloc(0);
  let pieces = [];

  socket.on("data", (chunk) => {
    waiting = Buffer.concat([waiting, chunk]);
    for (let frame = decode(waiting); frame; frame = decode(waiting)) {
      waiting = frame.rest;
      if (frame.opcode === 8) return socket.end(encode(8, Buffer.alloc(0)));
      if (frame.opcode === 9) socket.write(encode(10, frame.payload));
      if (frame.opcode > 2) continue;
      pieces.push(frame.payload);
      if (!frame.last) continue;
      const text = Buffer.concat(pieces).toString();
      pieces = [];
      try {
        onText(text);
      } catch {
        socket.destroy();
      }
    }
    if (waiting.length > 100000) socket.destroy();
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", onClose);
  return { send: (text) => socket.write(encode(1, Buffer.from(text))) };
}

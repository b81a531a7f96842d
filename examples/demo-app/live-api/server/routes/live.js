import { HttpError } from "../http.js";

const pingMs = 20_000;

/** A stream of what happens in a room: the room itself each time that it changes, and how many people are there. */
export function liveRoutes({ storage, hub }) {
  storage.onSave((room) => hub.tell(room.id, { type: "room", room }));
  return [
    {
      method: "GET",
      path: "/api/rooms/:room/events",
      handle({ params, request, response }) {
        const room = storage.get(params.room);
        if (!room) throw new HttpError(404, "There is no such room.");
        const send = (message) => response.write(`data: ${JSON.stringify(message)}\n\n`);
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
        send({ type: "room", room });
        const leave = hub.join(room.id, send);
        // What stands between may close a connection that is silent.
        const ping = setInterval(() => response.write(": ping\n\n"), pingMs);
        request.on("close", () => {
          clearInterval(ping);
          leave();
        });
      },
    },
  ];
}

/** Who listens to what happens in each room. */
export function createHub() {
  const rooms = new Map();

  const tell = (room, message) => {
    for (const listener of rooms.get(room) ?? []) listener(message);
  };
  const tellPeople = (room) => tell(room, { type: "people", people: rooms.get(room)?.size ?? 0 });

  return {
    tell,
    /** Calls the listener with all that happens in the room from now on, and answers how to leave it. */
    join(room, listener) {
      if (!rooms.has(room)) rooms.set(room, new Set());
      rooms.get(room).add(listener);
      tellPeople(room);
      return () => {
        const listeners = rooms.get(room);
        if (!listeners?.delete(listener)) return;
        if (listeners.size === 0) rooms.delete(room);
        tellPeople(room);
      };
    },
  };
}

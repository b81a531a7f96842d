import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * All rooms with their lists, in memory and in one file. Who saves a room gets an answer when it is on disk. The file is
 * replaced as a whole: a crash leaves the old one or the new one, never half of one.
 */
export async function openStorage(file) {
  const rooms = new Map((await readRooms(file)).map((room) => [room.id, room]));
  const listeners = new Set();
  let writing = Promise.resolve();

  const write = async () => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(`${file}.new`, JSON.stringify([...rooms.values()], null, 2));
    await rename(`${file}.new`, file);
  };

  return {
    all: () => [...rooms.values()],
    get: (id) => rooms.get(id),
    async save(room) {
      rooms.set(room.id, room);
      writing = writing.catch(() => {}).then(write);
      await writing;
      for (const listener of listeners) listener(room);
    },
    /** Calls the listener with every room that was saved. */
    onSave(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

async function readRooms(file) {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return [];
    throw new Error(`${file} can not be read: ${error.message}`, { cause: error });
  }
}

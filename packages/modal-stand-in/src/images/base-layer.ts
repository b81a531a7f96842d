import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { SnapshotId } from "@slipway/contract";
import { run } from "@slipway/sandbox";
import { type Boxes, workLifetimeMs } from "../boxes/boxes.ts";

const list = "/usr/local/share/modal-stand-in/packages";

/** There is no other root file system than this machine's: apt can only tell whether a package is part of it. */
const aptGet = `#!/bin/sh
command=
missing=
for word in "$@"; do
  case $word in
    -*) continue ;;
  esac
  if [ -z "$command" ]; then
    command=$word
    continue
  fi
  name=\${word%%=*}
  name=\${name%%:*}
  name=\${name%%/*}
  grep -qxF -- "$name" ${list} || missing="$missing $name"
done
case $command in
  update | upgrade | dist-upgrade | clean | autoclean | autoremove | "") exit 0 ;;
  install | satisfy) ;;
  *) echo "E: The Modal stand-in has no apt-get $command." >&2; exit 100 ;;
esac
[ -z "$missing" ] && exit 0
echo "E: Unable to locate package$missing. Images of the Modal stand-in have the root file system of this machine:" \\
  "install the package on the machine itself." >&2
exit 100
`;

const setUp = `mkdir -p /usr/local/bin /usr/local/share/modal-stand-in
for name in apt apt-get; do
  cat > /usr/local/bin/$name <<'WRAPPER'
${aptGet}WRAPPER
  chmod 755 /usr/local/bin/$name
done
cat > ${list}
command -v python > /dev/null || ! command -v python3 > /dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
`;

/** What every image from a registry starts from: this machine's root, with an apt-get that installs nothing. */
export async function makeBaseLayer(boxes: Boxes): Promise<SnapshotId> {
  const packages = boxes.hasProcesses ? await installedPackages() : [];
  const box = await boxes.create({
    snapshot: null,
    environment: {},
    ports: [],
    network: {},
    lifetimeMs: workLifetimeMs,
  });
  try {
    const { exitCode, stderr } = await run(box, ["sh", "-ec", setUp], { input: packages.join("\n") });
    if (exitCode !== 0 && exitCode !== null) throw new Error(`The base layer cannot be made: ${stderr}`);
    return (await box.snapshot()).id;
  } finally {
    await box.destroy();
  }
}

async function installedPackages(): Promise<string[]> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own placeholders
  const format = "${db:Status-Status} ${Package}\\n";
  const listed = await promisify(execFile)("dpkg-query", ["-W", "-f", format]).catch(() => ({ stdout: "" }));
  const lines = listed.stdout.split("\n").filter((line) => line.startsWith("installed "));
  return [...lines.map((line) => line.slice("installed ".length)), ""];
}

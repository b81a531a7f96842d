import { commandUid, inside } from "../../inside.ts";

const { root, store, tools, state, workdir, environment } = inside;
const identity = `--reuid ${commandUid} --regid ${commandUid} --clear-groups`;

/**
 * The sandbox's command, as root. Commands of an earlier life of these files may have left links in places of theirs:
 * it does nothing as root where they can write.
 */
export const bootScript = `#!/bin/sh
set -eu
umask 022
rm -rf ${tools}
mkdir -p ${tools}
for tool in $SLIPWAY_TOOLS; do ln -s "${store}/\${tool#*=}" "${tools}/\${tool%%=*}"; done
for other in ${state}/*; do
  [ "$other" = "$SLIPWAY_LINK_STATE" ] || rm -rf "$other"
done
if ! setpriv ${identity} mkdir -p -- "$SLIPWAY_WORKDIR" 2> /dev/null; then
  [ "$(realpath -m -- "$SLIPWAY_WORKDIR")" = "$SLIPWAY_WORKDIR" ]
  mkdir -p -- "$SLIPWAY_WORKDIR"
  chown ${commandUid}:${commandUid} -- "$SLIPWAY_WORKDIR"
fi
env -0 | grep -zv '^\\(SLIPWAY_\\|MODAL_\\|HOME=\\|USER=\\|LOGNAME=\\|PWD=\\|OLDPWD=\\|SHLVL=\\|SHELL=\\|TERM=\\|HOSTNAME=\\|_=\\)' > ${environment}.new || true
mv ${environment}.new ${environment}
here=$(dirname -- "$0")
export SLIPWAY_LINK_AGENT="$here/agent"
cd /
for node in ${store}/node-*/node; do
  [ ! -x "$node" ] || exec "$node" "$here/link.mjs"
done
exec node "$here/link.mjs"
`;

/** Unpacks what is written to \`archive\`, and makes the user of commands. Runs as root, while nothing else does. */
export function unpackScript(archive: string): string {
  return `set -eu
umask 022
mkdir -p ${store} ${state} ${workdir} /home/agent
tar -xzf ${archive} -C ${store} --no-same-owner
rm -f ${archive}
chown -R 0:0 ${root}
chmod 700 ${state}
chown ${commandUid}:${commandUid} ${workdir} /home/agent
grep -q '^[^:]*:[^:]*:${commandUid}:' /etc/passwd || echo 'agent:x:${commandUid}:${commandUid}::/home/agent:/bin/bash' >> /etc/passwd
grep -q '^[^:]*:[^:]*:${commandUid}:' /etc/group || echo 'agent:x:${commandUid}:' >> /etc/group
`;
}

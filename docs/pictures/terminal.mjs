// Runs the commands of a session and draws what they print: node terminal.mjs FILE.svg. The environment names the
// program (SEQUINS), a directory with two versions of a database in made/ (DIR) and a free port (PORT); the picture
// shows the usual names in their place. With reduced motion, it shows the last frame.
import {execFileSync, spawn} from 'node:child_process';
import {cpSync, mkdirSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const {SEQUINS, DIR, PORT} = process.env;
const address = '127.0.0.1:' + PORT;
const source = join(DIR, 'source');

// shown is text with the names that a reader would use.
const shown = s => s.replaceAll(address, 'localhost:9599').replaceAll('localhost:' + PORT, 'localhost:9599').replaceAll(DIR, '/srv');

// sh runs a command line and returns what it prints.
const sh = command => execFileSync('bash', ['-c', command], {encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe']});

async function until(f) {
  for (let i = 0; i < 600; i++) {
    try { if (f()) return; } catch { /* not yet */ }
    await new Promise(resolve => setTimeout(resolve, 100));
  }
  throw new Error('gave up waiting for ' + f);
}

const frames = []; // of lines, each with the pause before it
const say = (text, pause) => { for (const line of text.trimEnd().split('\n')) { frames.push({line: shown(line), pause}); pause = 0.05; } };
const type = command => frames.push({line: '$ ' + command, pause: 0.9, typed: true});
const note = text => frames.push({line: '# ' + text, pause: 0.9, note: true});

mkdirSync(join(source, 'products'), {recursive: true});
cpSync(join(DIR, 'made', '2026-01-30'), join(source, 'products', '2026-01-30'), {recursive: true});
const get = `curl -s ${address}/products/red-wool-scarf`;
const version = `curl -sI ${address}/products/red-wool-scarf | grep Version`;

note('a job has written a directory of files');
type('ls /srv/source/products/2026-01-30');
say(sh(`cd ${source}/products/2026-01-30 && ls -C -T 0 -w 90`), 0.4);
type('sequins --source /srv/source --local-store /tmp/sequins &');
const server = spawn(SEQUINS, ['--source', source, '--local-store', join(DIR, 'store'), '--bind', address], {stdio: 'ignore'});
try {
  await until(() => sh(version).includes('2026-01-30'));
  type('curl localhost:9599/products/red-wool-scarf');
  say(sh(get), 0.3);
  note('the next run of the job is done');
  cpSync(join(DIR, 'made', '2026-01-31'), join(source, 'products', '2026-01-31'), {recursive: true});
  type('mv /srv/out/2026-01-31 /srv/source/products/; kill -HUP %1');
  server.kill('SIGHUP');
  await until(() => sh(version).includes('2026-01-31'));
  type('curl localhost:9599/products/red-wool-scarf');
  say(sh(get), 0.3);
  await until(() => !sh(`${SEQUINS} status ${address}`).includes('loading'));
  type('sequins status');
  say(sh(`${SEQUINS} status ${address}`).split('\nNODE')[0], 0.4);
} finally {
  server.kill('SIGTERM');
  await new Promise(resolve => server.once('exit', resolve));
}

const escape = s => s.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const [step, left, top, charWidth] = [20, 18, 52, 7.83];
const columns = Math.max(...frames.map(f => f.line.length));
const [width, height] = [Math.ceil(columns * charWidth + 2 * left), frames.length * step + top + 8];
let at = 0;
const lines = frames.map((f, i) => {
  at += f.pause;
  const text = f.typed ? `<tspan class="p">$</tspan>${escape(f.line.slice(1))}` : escape(f.line);
  return `<text x="${left}" y="${top + i * step}" style="animation-delay:${at.toFixed(2)}s" class="${f.note ? 'n' : f.typed ? 't' : 'o'}">${text}</text>`;
});
writeFileSync(process.argv[2], `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="A terminal session: a node serves a version, and switches to the next one">
<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #d5d9e0; }
.t { fill: #ffffff; } .p { fill: #5fb878; } .n { fill: #8b93a1; }
@media (prefers-reduced-motion: no-preference) {
  text { opacity: 0; animation: show 0.01s linear forwards; }
  @keyframes show { to { opacity: 1; } }
}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#1c1f26"/>
<circle cx="22" cy="18" r="5.5" fill="#ff5f57"/><circle cx="42" cy="18" r="5.5" fill="#febc2e"/><circle cx="62" cy="18" r="5.5" fill="#28c840"/>
${lines.join('\n')}
</svg>
`);

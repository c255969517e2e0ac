// The status page, kept up to date from the status JSON. Everything that comes from there is hostile: it
// becomes text nodes and attribute values, never markup.
'use strict';
(() => {
const EVERY = 3000;       // ms between two looks, at least
const CELLS = 96;         // of a row of the partition map: with more partitions, a cell stands for several
const ROWS = 40;          // of the map, and of the table of nodes times 10
const only = document.body.dataset.db;
const byId = id => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';
let maps = new Map();     // what the rows of the map show, for their tooltips

// Making elements.
function fill(e, attrs, kids) {
  for (const [name, value] of Object.entries(attrs || {})) if (value !== undefined && value !== false) e.setAttribute(name, value);
  for (const kid of kids.flat(Infinity)) if (kid !== undefined && kid !== null && kid !== '' && kid !== false) e.append(kid);
  return e;
}
const el = (tag, attrs, ...kids) => fill(document.createElement(tag), attrs, kids);
const svg = (tag, attrs, ...kids) => fill(document.createElementNS(SVG, tag), attrs, kids);

// morph makes what is on the page like what it should be, and leaves alone what is: focus, selection and
// what has been opened or closed stay.
function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) { old.replaceWith(now); return; }
  if (old.nodeName === 'title') return; // the pointer's, see below
  if (old.nodeType === Node.TEXT_NODE) { if (old.data !== now.data) old.data = now.data; return; }
  for (const {name} of [...old.attributes]) if (name !== 'open' && !now.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of now.attributes) if (name !== 'open' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const kids = [...now.childNodes];
  kids.forEach((kid, i) => old.childNodes[i] ? morph(old.childNodes[i], kid) : old.append(kid));
  while (old.childNodes.length > kids.length) old.lastChild.remove();
}

// Things in words.
const count = (n, what) => thousands(n) + ' ' + what + (n === 1 ? '' : 's');
const thousands = n => Math.round(n).toLocaleString('en-US');
const known = t => t && !t.startsWith('0001');
const sorted = o => Object.keys(o || {}).sort();
function size(n) {
  let i = -1;
  for (; n >= 1024 && i < 4; i++) n /= 1024;
  return i < 0 ? n + ' B' : n.toFixed(1) + ' ' + 'KMGTP'[i] + 'iB';
}
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return s + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min';
  if (s < 172800) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return count(Math.floor(s / 86400), 'day');
}
const ago = t => span(Date.now() - Date.parse(t));
// ranges puts ascending numbers in as few words as it can: 0–5, 8, …
function ranges(list) {
  const out = [];
  for (let i = 0; i < list.length && out.length <= 12; i++) {
    const from = list[i];
    while (i + 1 < list.length && list[i + 1] === list[i] + 1) i++;
    out.push(out.length === 12 ? '…' : from === list[i] ? '' + from : from + '–' + list[i]);
  }
  return out.join(', ');
}

// A version over all nodes.
const levels = {ACTIVE: 'good', BUILDING: 'busy', HELD: 'warn', ERROR: 'bad'};
function replicas(v) {
  const counts = new Array(v.num_partitions).fill(0);
  for (const n of Object.values(v.nodes)) {
    if (n.state !== 'ERROR') for (const p of n.partitions) if (p < counts.length) counts[p]++;
  }
  return counts;
}
const paint = (n, target) => n === 0 ? 'r0' : n < target ? 'r1' : n === target ? 'r2' : 'r3';
const where = (counts, test) => counts.flatMap((n, p) => test(n) ? [p] : []);

// strip is a row of the map: a path for each colour. share says how much of each cell to fill.
function strip(key, label, m, share) {
  const d = {};
  for (let c = 0; c < m.cells; c++) {
    const s = share(c) && Math.max(share(c), .3); // what is there is seen, however little of the cell it is
    if (s > 0) d[m.colour[c]] = (d[m.colour[c]] || '') + `M${c} ${1 - s}h.9v${s}h-.9z`;
  }
  const shape = {viewBox: `0 0 ${m.cells} 1`, preserveAspectRatio: 'none', width: m.cells < 24 ? m.cells * 32 : '100%'};
  return svg('svg', {...shape, class: 'strip', role: 'img', 'aria-label': label, 'data-map': key},
    svg('title'),
    svg('rect', {width: m.cells, height: 1}),
    sorted(d).map(r => svg('path', {class: r, d: d[r]})));
}

function partitionMap(key, v, here) {
  const P = v.num_partitions, per = Math.ceil(P / CELLS), cells = Math.ceil(P / per), counts = replicas(v), target = v.target_replication;
  const m = {cells, per, counts, target, colour: []};
  for (let c = 0; c < cells; c++) m.colour.push(paint(Math.min(...counts.slice(c * per, (c + 1) * per)), target));
  maps.set(key, m);
  const names = sorted(v.nodes), shown = names.slice(0, ROWS);
  const row = (name, held, share) => [
    el('span', {class: 'name'}, name),
    strip(key, `${name}: ${held} of ${P} partitions`, m, share),
    el('span', {class: 'dim'}, `${thousands(held)} of ${thousands(P)}`)];
  const rows = names.length > 1 || target > 1 ? row('all nodes', P - where(counts, n => n === 0).length, () => 1) : [];
  for (const name of shown) {
    const per_cell = new Array(cells).fill(0), held = v.nodes[name].partitions;
    for (const p of held) per_cell[Math.floor(p / per)]++;
    rows.push(...row(name === here && name !== 'localhost' ? name + ' (this node)' : name, held.length,
      c => per_cell[c] / Math.min(per, P - c * per)));
  }
  const kinds = {r0: 'no node holds', r1: 'too few replicas', r2: count(target, 'replica') + ', as wanted', r3: 'more replicas than wanted'};
  const legend = sorted(kinds).flatMap(r => {
    const list = where(counts, n => paint(n, target) === r);
    if (!list.length) return [];
    return [el('span', {}, svg('svg', {viewBox: '0 0 1 1', 'aria-hidden': 'true'}, svg('rect', {class: r, width: 1, height: 1})),
      `${kinds[r]}: ${list.length}` + (r < 'r2' && list.length < P ? ` (${ranges(list)})` : ''))];
  });
  return [
    el('div', {class: 'map'}, rows),
    el('p', {class: 'legend'}, legend, per > 1 && el('span', {}, `each cell: ${per} partitions, coloured by the worst of them`),
      names.length > ROWS && el('span', {}, `${names.length - ROWS} more nodes are not shown`))];
}

// load is the progress of all nodes that load a version.
function load(name, nodes) {
  const all = nodes.map(n => n.progress).filter(p => p);
  if (!all.length) return [];
  const sum = f => all.reduce((n, p) => n + (p[f] || 0), 0);
  const total = sum('bytes'), done = sum('bytes_done'), eta = Math.max(0, ...all.map(p => Date.parse(p.eta) || 0));
  let text = `${size(done)} of ${size(total)} read, ${sum('files_done')} of ${count(sum('files'), 'file')}, ${thousands(sum('records'))} records`;
  if (sum('records_per_second')) text += ` (${thousands(sum('records_per_second'))} a second)`;
  const left = eta - Date.now();
  const percent = total > 0 ? Math.min(100, Math.floor(100 * done / total)) : 0;
  return [
    el('progress', {max: 100, value: percent, 'aria-label': 'loading ' + name}, percent + ' %'),
    el('p', {class: 'dim'}, `${percent} %: ${text}`, left > 0 && `, about ${span(left)} left`)];
}

// states says what most and what other nodes do with a version: ACTIVE on 2 nodes, BUILDING on 1.
function states(nodes) {
  const n = {};
  for (const {state} of nodes) n[state] = (n[state] || 0) + 1;
  return sorted(n).map(s => `${s} on ${count(n[s], 'node')}`).join(', ');
}

// saying groups what nodes say by what it is.
function saying(v, field) {
  const by = new Map();
  for (const name of sorted(v.nodes)) {
    const text = v.nodes[name][field];
    if (text) by.set(text, [...(by.get(text) || []), name]);
  }
  return [...by].map(([text, names]) => names.length === Object.keys(v.nodes).length ? text :
    `${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}: ${text}`);
}

function timeline(db, name, v, here, current) {
  const nodes = Object.values(v.nodes), own = v.nodes[here] || nodes[0] || {};
  const serving = nodes.filter(n => n.current).length;
  return el('li', {class: levels[own.state] || 'none'},
    el('code', {}, name), ' ', el('span', {class: 'state ' + (levels[own.state] || 'dim')}, own.state),
    own.current && el('span', {class: 'state current'}, 'current'), ' ',
    el('span', {class: 'dim'},
      known(own.active_at) ? `active for ${ago(own.active_at)}` : known(own.created_at) && `seen ${ago(own.created_at)} ago`,
      nodes.length > 1 && ` · ${states(nodes)}${serving && serving < nodes.length ? `; current on ${serving} of ${nodes.length}` : ''}`),
    load(name, nodes),
    saying(v, 'detail').filter(text => text !== 'loading').map(text => el('p', {}, text)),
    saying(v, 'error').map(text => el('p', {class: 'bad'}, text)),
    own.state === 'HELD' && current && el('p', {}, el('a', {href: `/${encodeURIComponent(db)}?diff=${encodeURIComponent(current)}..${encodeURIComponent(name)}`},
      `What differs from ${current}`), ' (as JSON)'),
    el('p', {class: 'dim'}, el('code', {}, v.path)));
}

// keys is how many keys a version has: exactly where one node holds all of them.
function keys(v) {
  const nodes = Object.values(v.nodes), all = nodes.find(n => n.partitions.length === v.num_partitions);
  if (all) return thousands(all.records || 0);
  const held = nodes.reduce((n, x) => n + x.partitions.length, 0);
  return held ? 'about ' + thousands(nodes.reduce((n, x) => n + (x.records || 0), 0) * v.num_partitions / held) : '0';
}

function tiles(v, own) {
  const nodes = Object.values(v.nodes), disk = nodes.reduce((n, x) => n + (x.bytes || 0), 0);
  const tile = (name, value) => value && el('div', {}, el('dt', {}, name), el('dd', {}, value));
  return el('dl', {class: 'tiles'},
    tile('data from', known(own.last_modified) && ago(own.last_modified) + ' ago'),
    tile('active for', known(own.active_at) && ago(own.active_at)),
    tile('keys', keys(v)),
    tile(nodes.length > 1 ? `on ${nodes.length} nodes' disks` : 'on disk', size(disk)),
    tile('partitions', thousands(v.num_partitions)),
    tile('partitioner', own.partitioner));
}

// hotKeys are the keys that clients have read most from this node in the last minutes.
function hotKeys(keys) {
  if (!keys) return;
  const name = k => k.key ? k.key + (k.key_truncated ? '…' : '') : 'hash ' + k.hash;
  const rate = n => n < 10 ? n.toFixed(1) : thousands(Math.floor(n));
  return [el('h3', {}, 'Keys read most from this node'), el('ol', {class: 'hot'}, keys.map(k => el('li', {},
    el('code', {}, name(k)), ' ', el('span', {class: 'dim'}, `${(100 * k.share).toFixed(1)} % of the reads, about ${rate(k.per_second)} a second`))))];
}

// pinned is what people have decided about the versions of a db.
function pinned(p) {
  if (!p) return;
  const list = (names, what) => names && names.length && `${names.join(', ')} ${what}`;
  const parts = [p.version && `pinned to ${p.version}` + (p.until ? ` until ${p.until}` : ''), list(p.exclude, 'excluded'), list(p.approve, 'approved')];
  return el('p', {class: 'warn'}, parts.filter(x => x).join(', ') + (p.reason ? ': ' + p.reason : '') + (p.by ? ` (by ${p.by})` : ''));
}

// happened are the last events of a db on this node.
const eventLevels = {failed: 'bad', held: 'warn', pinned: 'warn', rolled_back: 'warn', active: 'good', approved: 'good'};
function happened(list) {
  if (!list || !list.length) return;
  return el('details', {}, el('summary', {}, 'What happened on this node'), el('ol', {class: 'events'}, list.map(e => el('li', {},
    e.time.slice(0, 19).replace('T', ' '), ' ', el('span', {class: eventLevels[e.kind]}, e.kind.replaceAll('_', ' ')), ' ',
    el('code', {}, e.version), ' ', el('span', {class: 'dim'}, e.reason)))));
}

function database(name, db, here) {
  const versions = sorted(db.versions).reverse();
  const current = versions.find(v => (db.versions[v].nodes[here] || {}).current);
  const failed = versions.some(v => ['ERROR', 'HELD'].includes((db.versions[v].nodes[here] || {}).state));
  const v = db.versions[current], lost = v && v.missing_partitions > 0, thin = v && v.underreplicated_partitions > 0;
  const level = !v || lost ? 'bad' : failed || thin ? 'warn' : 'good';
  const shown = versions.filter(x => db.versions[x].num_partitions > 0 && (x === current || ['BUILDING', 'HELD'].includes((db.versions[x].nodes[here] || {}).state)));
  return el('section', {'data-name': name},
    el('h2', {}, el('a', {href: '/' + encodeURIComponent(name) + '/'}, name)),
    el('span', {class: level}, v ? 'serving ' + current : 'nothing to serve yet'),
    db.error && el('p', {class: 'bad'}, db.error),
    pinned(db.pin),
    v && tiles(v, v.nodes[here]),
    hotKeys(db.hot_keys),
    el('h3', {}, 'Versions'),
    el('ul', {class: 'versions'}, versions.map(x => timeline(name, x, db.versions[x], here, current)),
      !versions.length && el('li', {class: 'none'}, el('span', {class: 'dim'}, 'no versions'))),
    shown.reverse().map(x => el('details', {open: x === current || shown.length === 1 ? '' : undefined},
      el('summary', {}, `Who holds ${x}`), partitionMap(name + '/' + x, db.versions[x], here))),
    happened(db.events));
}

// misses is what a node lacks of what it should hold, and what it waits for.
function misses(st, node) {
  const out = [];
  for (const db of sorted(st.dbs)) {
    const versions = sorted(st.dbs[db].versions), newest = versions[versions.length - 1];
    for (const version of versions) {
      const v = st.dbs[db].versions[version], n = v.nodes[node];
      if (!n && version === newest && Object.values(v.nodes).some(o => o.state !== 'REMOVING')) out.push(`${db} ${version}: not found yet`);
      if (!n || n.state === 'REMOVING') continue;
      if (n.state === 'ERROR') out.push(`${db} ${version} has failed`);
      else if (n.progress) out.push(`${db} ${version}: ${n.progress.partitions - n.progress.partitions_done} of ${count(n.progress.partitions, 'partition')} to load`);
      else if (n.detail || n.state === 'BUILDING') out.push(`${db} ${version}: ${n.detail || 'loading'}`);
    }
  }
  return out;
}

// room is what is left of a disk.
const room = d => d && d.bytes > 0 && el('span', {class: d.low && 'warn'}, `${size(d.bytes_free)} (${Math.floor(100 * d.bytes_free / d.bytes)} %)`);

function nodeRow(st, name) {
  const self = name === st.node, p = self ? {shard_id: st.shard_id, zone: st.zone, build: st.build, started_at: st.started_at, disk: st.disk} : (st.peers || {})[name] || {};
  const serving = [], cell = (label, ...kids) => el('td', {'data-label': label}, kids);
  let disk = 0;
  for (const db of sorted(st.dbs)) for (const [version, v] of Object.entries(st.dbs[db].versions)) {
    const n = v.nodes[name];
    if (!n) continue;
    disk += n.bytes || 0;
    if (n.current) serving.push(`${db} ${version}`);
  }
  const lacks = misses(st, name).slice(0, 5);
  return el('tr', {},
    el('th', {scope: 'row'}, name, self && name !== 'localhost' && ' (this node)'),
    cell('shard', p.shard_id), cell('zone', p.zone), cell('build', p.build), cell('up for', known(p.started_at) && ago(p.started_at)),
    cell('on disk', disk > 0 && size(disk)), cell('disk free', room(p.disk)),
    cell('serving', serving.slice(0, 5).map(s => el('div', {}, s)), serving.length > 5 && `and ${serving.length - 5} more`),
    p.error ? cell('', el('span', {class: 'bad'}, 'did not answer: ' + p.error)) :
      lacks.length ? cell('', lacks.map(s => el('div', {class: 'warn'}, s))) : cell('misses', 'nothing'));
}

function nodeTable(st) {
  const names = [...new Set([st.node, ...sorted(st.peers)])], shown = names.slice(0, 10 * ROWS);
  if (only || names.length < 2) return;
  return el('section', {}, el('h2', {}, 'Nodes'), el('table', {},
    el('thead', {}, el('tr', {}, ['node', 'shard', 'zone', 'build', 'up for', 'on disk', 'disk free', 'serving', 'misses'].map(h => el('th', {scope: 'col'}, h)))),
    el('tbody', {}, shown.map(name => nodeRow(st, name)))),
    names.length > shown.length && el('p', {class: 'dim'}, `${names.length - shown.length} more are not shown`));
}

function notes(st) {
  const out = [];
  if (st.source_error) out.push('The source cannot be read' + (known(st.source_error_since) ? ' since ' + ago(st.source_error_since) : '') + ': ' + st.source_error);
  if (st.reload_error) out.push('The reload of the configuration has failed' + (known(st.reload_error_since) ? ' since ' + ago(st.reload_error_since) : '') + ': ' + st.reload_error);
  const zk = st.zookeeper;
  if (zk && !zk.connected) out.push('ZooKeeper cannot be reached' + (known(zk.since) ? ' since ' + ago(zk.since) : '') + (zk.error ? ': ' + zk.error : ''));
  // On the page of all dbs the table of nodes says so.
  if (only) for (const name of sorted(st.peers)) if (st.peers[name].error) out.push(`${name} did not answer: ${st.peers[name].error}`);
  const differences = (st.differences || []).map(d => `${d.setting} differs: ` + d.values.map(v => `${v.value} on ${v.nodes.join(', ')}`).join('; '));
  return [...out, ...(st.problems || []), ...differences, ...(st.warnings || [])].slice(0, 20);
}

function show(st) {
  maps = new Map();
  document.title = (st.level === 'good' ? '' : '⚠ ') + 'sequins' + (st.node ? ' on ' + st.node : '');
  const names = sorted(st.dbs).filter(name => !only || name === only);
  morph(byId('health'), el('h1', {id: 'health', class: st.level}, st.health));
  morph(byId('about'), el('p', {id: 'about'}, only ? el('a', {href: '/'}, 'sequins') : 'sequins', st.build && ' ' + st.build, st.node && ' on ' + st.node,
    st.role === 'router' && ', a router', known(st.started_at) && ', up for ' + ago(st.started_at), st.source && ', from ', st.source && el('code', {}, st.source),
    st.disk && ', ', st.disk && el('span', {class: st.disk.low && 'warn'}, `${size(st.disk.bytes_free)} of ${size(st.disk.bytes)} of disk free`)));
  morph(byId('notes'), el('div', {id: 'notes'}, notes(st).map(text => el('p', {class: 'note'}, text))));
  morph(byId('status'), el('main', {id: 'status'}, names.map(name => database(name, st.dbs[name], st.node)), only && !names.length && 'no such db', nodeTable(st)));
  const choice = byId('db');
  if ([...choice.options].map(o => o.value).join('\n') !== names.join('\n')) choice.replaceChildren(...names.map(name => el('option', {}, name)));
  byId('lookup').hidden = byId('lookup').parentNode.hidden = !names.length;
  byId('now').textContent = new Date().toISOString().slice(0, 19).replace('T', ' ');
}

// Where the node wants a token, somebody is asked for it, and it is kept as long as this tab, for this node
// alone. It goes into a header and nowhere else.
const TOKEN = 'sequins-token';
async function ask(path) {
  const headers = {Accept: 'application/json'}, token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = 'Bearer ' + token;
  const r = await fetch(path, {headers, cache: 'no-store', signal: AbortSignal.timeout(20000)});
  if (r.status === 401 && sessionStorage.getItem(TOKEN) === token) sessionStorage.removeItem(TOKEN);
  if (!r.ok) throw Object.assign(new Error((await r.text()).trim() || 'it answers with ' + r.status), {shut: r.status === 401 || r.status === 403, tried: token});
  return r.json();
}
byId('access').addEventListener('submit', e => {
  e.preventDefault();
  sessionStorage.setItem(TOKEN, byId('token').value);
  byId('token').value = '';
  refresh();
});

// Keeping it up to date, as long as somebody looks, and no more often than the node can well bear.
let timer = 0, seen = Date.now();
async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  const began = Date.now(), stale = byId('stale');
  try {
    show(await ask('/'));
    seen = Date.now();
    stale.hidden = byId('access').hidden = true;
  } catch (e) {
    if (e.shut) {
      byId('access').hidden = false;
      if (e.tried) byId('refused').textContent = e.message;
      if (!byId('status').childElementCount) return; // until there is a token
    }
    stale.textContent = `This node cannot be asked (${e.message}). What is shown is ${span(Date.now() - seen)} old.`;
    stale.hidden = false;
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(EVERY, 10 * (Date.now() - began)));
}
document.addEventListener('visibilitychange', refresh);
refresh();

// Which partitions a cell of the map is.
document.addEventListener('pointermove', e => {
  const s = e.target.closest && e.target.closest('svg.strip'), m = s && maps.get(s.dataset.map);
  if (!m) return;
  const box = s.getBoundingClientRect(), c = Math.min(m.cells - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * m.cells)));
  const from = c * m.per, to = Math.min(m.counts.length, from + m.per) - 1, least = Math.min(...m.counts.slice(from, to + 1));
  s.querySelector('title').textContent = from === to ? `partition ${from}: ${count(least, 'replica')}` : `partitions ${from}–${to}: at least ${count(least, 'replica')}`;
});

// Looking a key up.
function explained(x) {
  const line = (name, ...kids) => kids.some(k => k) && [el('dt', {}, name), el('dd', {}, kids)];
  const t = x.microseconds, b = x.block;
  return el('dl', {},
    line('answer', el('span', {class: x.found ? 'good' : x.status === 404 ? 'warn' : 'bad'},
      x.found ? `found, ${size(x.size || 0)}` : x.error || 'not found'), ` in version ${x.version}`, x.etag && `, ETag ${x.etag}`),
    line('hash', x.partitions > 0 && `${x.partitioner}: ${x.hash}, mod ${x.partitions} is partition ${x.partition}`),
    line('replicas', x.replicas.join(', ')),
    line('answered by', ({local: 'this node', cache: 'the cache of this node'})[x.answered_by] || x.answered_by || 'nobody'),
    line('block', b && el('code', {}, b.file), b && ` page ${b.page} of ${b.pages}: ${size(b.length)} at offset ${thousands(b.offset)}${b.compressed ? ', compressed' : ''}`),
    line('time', `${t.total} µs: version ${t.version}, hash ${t.partition}, block ${t.block}` + (t.peers ? `, other nodes ${t.peers}` : '')));
}
byId('lookup').addEventListener('submit', async e => {
  e.preventDefault();
  const out = byId('answer'), key = byId('key').value;
  try {
    const x = await ask(`/${encodeURIComponent(byId('db').value)}/${encodeURIComponent(key)}?explain`);
    if (!x.microseconds) throw new Error('a browser cannot ask for this key');
    out.replaceChildren(explained(x));
  } catch (error) {
    out.replaceChildren(el('p', {class: 'bad'}, error.message));
  }
});
})();

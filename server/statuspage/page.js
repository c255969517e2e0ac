// Keeps the page up to date: asks for it again, and changes what differs. What comes from the node is parsed as a
// document of its own, in which nothing runs, and its nodes are moved here.
'use strict';
(() => {
const EVERY = 3000; // ms between two looks, at least
const byId = id => document.getElementById(id);

// morph makes a node like what it should be, and leaves alone what is: focus, selection and what has been opened stay.
// Children with a data-key keep their nodes when others come before them.
const kept = name => name === 'open' || name === 'hidden';
function morph(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) return old.replaceWith(now);
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  if (old.isEqualNode(now)) return;
  for (const {name} of [...old.attributes]) if (!kept(name) && !now.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of now.attributes) if (!kept(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  const key = e => e.dataset && e.dataset.key;
  const keyed = new Map([...old.childNodes].filter(key).map(e => [key(e), e]));
  let at = old.firstChild;
  for (const kid of [...now.childNodes]) {
    const same = key(kid) ? keyed.get(key(kid)) : at && !key(at) ? at : null;
    if (!same) {
      old.insertBefore(kid, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    morph(same, kid);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// Where the node wants a token, somebody is asked for it, and it is kept as long as this tab, for this node
// alone. It goes into a header and nowhere else.
const TOKEN = 'sequins-token';
async function ask(path, accept, more) {
  const headers = {Accept: accept, ...more}, token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = 'Bearer ' + token;
  const r = await fetch(path, {headers, cache: 'no-store', signal: AbortSignal.timeout(20000)});
  if (r.status === 401 && sessionStorage.getItem(TOKEN) === token) sessionStorage.removeItem(TOKEN);
  const text = await r.text();
  if (r.ok) return text;
  const why = (r.headers.get('Content-Type') || '').startsWith('text/plain') && text.trim();
  throw Object.assign(new Error(why || (r.status === 401 ? 'this token is not known' : 'it answers with ' + r.status)),
    {status: r.status, shut: r.status === 401 || r.status === 403, tried: token});
}
byId('access').addEventListener('submit', e => {
  e.preventDefault();
  sessionStorage.setItem(TOKEN, byId('token').value);
  byId('token').value = '';
  refresh();
});

// The filter: rows of tables by the name of their database. It is only of use with scripts.
function filter() {
  const field = byId('filter');
  if (!field) return;
  field.parentNode.hidden = false;
  const text = field.value.trim().toLowerCase();
  let left = 0;
  for (const row of document.querySelectorAll('tr[data-db]')) {
    row.hidden = !row.dataset.db.toLowerCase().includes(text);
    left += !row.hidden && row.closest('#databases') ? 1 : 0;
  }
  byId('none').hidden = left > 0;
}
document.addEventListener('input', e => { if (e.target.id === 'filter') filter(); });

// show takes over what another document has. Somebody who listens is told of a change of the health, and of nothing else.
function show(doc) {
  const main = byId('main'), level = main.dataset.level, next = doc.getElementById('main');
  document.title = doc.title;
  if (level !== next.dataset.level) byId('said').textContent = next.dataset.said;
  morph(byId('top'), doc.getElementById('top'));
  morph(main, next);
  morph(byId('now'), doc.getElementById('now'));
  const lookup = byId('lookup'), names = doc.getElementById('db');
  if (!lookup && names) main.after(doc.getElementById('lookup'));
  else if (names) morph(byId('db'), names);
  ready();
}
function ready() {
  filter();
  if (byId('lookup')) byId('lookup').hidden = !byId('db').options.length;
}

// Keeping it up to date, as long as somebody looks, and no more often than the node can well bear.
let timer = 0, seen = Date.now();
async function refresh() {
  clearTimeout(timer);
  if (document.hidden) return;
  const began = Date.now(), stale = byId('stale');
  try {
    show(new DOMParser().parseFromString(await ask(location.pathname, 'text/html'), 'text/html'));
    seen = Date.now();
    for (const e of [stale, byId('access')]) if (!e.hidden) e.hidden = true; // a change may be announced
  } catch (e) {
    if (e.shut) {
      byId('access').hidden = false;
      if (e.tried) byId('refused').textContent = e.message;
    }
    if (e.status === 404) byId('access').hidden = true;
    if (!e.shut || byId('lookup')) {
      const text = e.status === 404 ? 'There is no such database on this node.' : `This node cannot be asked (${e.message}). What is shown is of ${new Date(seen).toISOString().slice(11, 19)} UTC.`;
      if (stale.textContent !== text) stale.textContent = text;
      stale.hidden = false;
    }
  }
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(EVERY, 10 * (Date.now() - began)));
}
document.addEventListener('visibilitychange', refresh);
ready();
if (byId('lookup')) timer = setTimeout(refresh, EVERY); // it is of now
else refresh();

// Looking a key up.
const el = (tag, attrs, ...kids) => {
  const e = Object.assign(document.createElement(tag), attrs);
  e.append(...kids.flat(Infinity).filter(kid => kid || kid === 0));
  return e;
};
function explained(x) {
  const line = (name, ...kids) => kids.some(k => k) ? [el('dt', {}, name), el('dd', {}, kids)] : [];
  const t = x.microseconds, b = x.block, size = n => n.toLocaleString('en-US') + ' B';
  return el('dl', {},
    line('answer', el('span', {className: x.found ? 'good' : x.status === 404 ? 'warn' : 'bad'},
      x.found ? `found, ${size(x.size || 0)}` : x.error || 'not found'), ` in version ${x.version}`, x.etag && `, ETag ${x.etag}`),
    line('hash', x.partitions > 0 && `${x.partitioner}: ${x.hash}, mod ${x.partitions} is partition ${x.partition}`),
    line('replicas', x.replicas.join(', ')),
    line('answered by', ({local: 'this node', cache: 'the cache of this node'})[x.answered_by] || x.answered_by || 'nobody'),
    line('block', b && el('code', {}, b.file), b && ` page ${b.page} of ${b.pages}: ${size(b.length)} at offset ${b.offset.toLocaleString('en-US')}${b.compressed ? ', compressed' : ''}`),
    line('time', `${t.total} µs: version ${t.version}, hash ${t.partition}, block ${t.block}` + (t.peers ? `, other nodes ${t.peers}` : '')));
}
document.addEventListener('submit', async e => {
  if (e.target.id !== 'ask') return;
  e.preventDefault();
  const out = byId('answer'), key = byId('key').value;
  try {
    const path = `/${encodeURIComponent(byId('db').value)}/${encodeURIComponent(key)}`;
    const x = JSON.parse(await ask(path + '?explain', 'text/plain, application/json;q=0.9'));
    if (!x.microseconds) throw new Error('a browser cannot ask for this key');
    out.replaceChildren(explained(x));
    if (!x.found || !x.size) return;
    const value = await ask(path, '*/*', {Range: 'bytes=0-1023', 'X-Sequins-Version': x.version});
    out.append(el('pre', {}, value.replace(/\uFFFD$/, ''), x.size > 1024 && '…')); // the range may end within a character
  } catch (error) {
    out.replaceChildren(el('p', {className: 'bad'}, error.message));
  }
});
})();

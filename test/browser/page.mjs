// One scenario over the status page: node page.mjs SCENARIO URL CHROMIUM SCREENSHOTS. Exits with 1 and says why
// if the page does not show what it should. SCREENSHOTS is a directory, or empty.
import assert from 'node:assert/strict';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {chromium} from 'playwright-core';
import {axe, everybody, quiet, reader, shoot} from './access.mjs';

const [scenario, url, executablePath, shots] = process.argv.slice(2);
const answers = createInterface({input: process.stdin})[Symbol.asyncIterator]();

// act asks the test for something, and waits until it is done.
async function act(what) {
  console.log('> ' + what);
  await answers.next();
}

const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];
const profile = await mkdtemp(join(tmpdir(), 'sequins-browser-'));
const context = await chromium.launchPersistentContext(profile, {executablePath, headless: true, viewport: {width: 1100, height: 800}, args});
context.setDefaultTimeout(30000);

// A page and all that it complains of: nothing may.
const complaints = [];
async function open(path) {
  const page = await context.newPage();
  page.on('console', m => { if (m.type() === 'error') complaints.push(m.text()); });
  page.on('pageerror', e => complaints.push(e.message));
  page.on('request', r => { if (!r.url().startsWith(url) && !r.url().startsWith('data:')) complaints.push('asks ' + r.url()); });
  await page.goto(url + path);
  return page;
}

const has = (page, selector, text) => page.locator(selector, {hasText: text}).first().waitFor();
const text = (page, selector) => page.locator(selector).first().innerText();
const row = (table, name) => `#${table} tr[data-key^="${name}"]`;

async function lookUp(page, db, key) {
  await page.selectOption('#db', db);
  await page.fill('#key', key);
  await page.press('#key', 'Enter');
  await page.locator('#answer dl, #answer p').first().waitFor();
}

// calls are what a page of another origin does with a node, as itself: they run in the browser.
const calls = {
  get: async node => {
    const r = await fetch(node + '/words/key-000001');
    return [r.status, await r.text(), r.headers.get('X-Sequins-Version'), r.headers.get('ETag') !== null];
  },
  token: async node => {
    const r = await fetch(node + '/words/key-000002', {headers: {Authorization: 'Bearer the-token-of-the-web', 'X-Sequins-At-Least': '1'}});
    return [r.status, await r.text()];
  },
  post: async node => {
    const r = await fetch(node + '/words', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({keys: ['key-000003', 'none']})});
    return [r.status, await r.json()];
  },
  range: async node => {
    const lines = (await (await fetch(node + '/words?prefix=key-00000')).text()).trim().split('\n');
    return [lines.length, JSON.parse(lines.at(-1)).records];
  },
  absent: async node => {
    const r = await fetch(node + '/words/none', {headers: {Accept: 'application/json'}});
    return [r.status, (await r.json()).detail, r.headers.get('X-Sequins-Version')];
  },
  behind: async node => {
    const r = await fetch(node + '/words/key-000001', {headers: {'X-Sequins-At-Least': '9'}});
    return [r.status, r.headers.get('Retry-After')];
  },
  part: async node => {
    const r = await fetch(node + '/words/key-000001', {headers: {Range: 'bytes=0-5'}});
    return [r.status, await r.text(), r.headers.get('Content-Range')];
  },
  status: async node => {
    const r = await fetch(node + '/');
    return [r.status, Object.keys((await r.json()).dbs)];
  },
  credentials: async node => (await fetch(node + '/words/key-000001', {credentials: 'include'})).status,
  put: async node => (await fetch(node + '/words/key-000001', {method: 'PUT', body: 'x'})).status,
};

// call has a page do one of them; what fails for the page is "refused".
const call = (page, name, node) => page.evaluate(([source, node]) => eval(source)(node).catch(e => 'refused: ' + e.name), [calls[name].toString(), node]);

const scenarios = {
  // The page at url is of an allowed origin, and has the addresses of a node and of a page of another origin that is not.
  async cors() {
    const page = await context.newPage();
    await page.goto(url);
    const {node, other} = await page.evaluate(() => ({...document.body.dataset}));
    const value = 'secret 1 key-000001';
    assert.deepEqual(await call(page, 'get', node), [200, value, '1', true]);
    assert.deepEqual(await call(page, 'token', node), [200, 'secret 1 key-000002']);
    assert.deepEqual(await call(page, 'post', node), [200, {version: '1', values: [{value: 'secret 1 key-000003'}, null]}]);
    assert.deepEqual(await call(page, 'range', node), [11, 10]);
    assert.deepEqual(await call(page, 'absent', node), [404, 'no such key', '1']);
    assert.deepEqual(await call(page, 'behind', node), [503, '1']);
    assert.deepEqual(await call(page, 'part', node), [206, value.slice(0, 6), `bytes 0-5/${value.length}`]);
    assert.deepEqual(await call(page, 'status', node), [200, ['words']]);
    assert.deepEqual(await call(page, 'credentials', node), 'refused: TypeError', 'credentials of the browser are allowed');
    assert.deepEqual(await call(page, 'put', node), 'refused: TypeError');
    await act('revalidated'); // the browser has asked again for what it has, and was told that it is the same
    await page.goto(other);
    for (const name of Object.keys(calls)) assert.deepEqual(await call(page, name, node), 'refused: TypeError', name + ' of an origin that is not allowed');
  },

  async healthy() {
    const page = await open('/');
    await has(page, '.health.good h1', 'Serving 2 databases.');
    await has(page, row('databases', 'words'), '2026-01-30');
    await has(page, row('databases', 'words') + ' [data-label=age]', /\d/);
    assert.equal(await page.locator('#databases tbody tr').count(), 2);
    await has(page, row('databases', 'words') + ' [data-label="requests/s"]', /\d/);
    await has(page, '#events tbody tr', 'active');

    // A key is looked up with the keyboard alone.
    await page.focus('#db');
    await page.keyboard.type('words');
    await page.keyboard.press('Tab');
    await page.keyboard.type('key-000007');
    await page.keyboard.press('Enter');
    await has(page, '#answer', 'found, 28 B in version 2026-01-30');
    await has(page, '#answer', 'this node');
    await has(page, '#answer', 'mod 8 is partition');
    assert.match(await text(page, '#answer pre'), /secret/);
    assert.equal((await text(page, '#answer pre')).length, 28);
    await everybody(page, shots, 'healthy');
    await quiet(page);

    // The filter leaves the rows of databases, and of their events.
    await page.fill('#filter', 'WOR');
    assert.equal(await page.locator('#databases tbody tr:visible').count(), 1);
    assert.equal(await page.locator('#events tr[data-db=users]:visible').count(), 0);
    assert.ok(await page.locator('#events tr[data-db=words]:visible').count() > 1);
    await page.fill('#filter', 'nobody');
    await has(page, '#none', 'No database');
    await page.fill('#filter', '');
    await page.locator('#none').waitFor({state: 'hidden'});

    // What is on the page changes by itself, and what one is doing is left alone.
    const one = await open('/words/');
    await one.locator('#holders summary').first().click(); // closes it
    await page.evaluate(() => { window.sameDocument = true; });
    await page.fill('#key', 'half a k');
    await act('publish');
    await has(page, row('databases', 'words') + ' .version', '2026-01-31');
    await has(page, '#events tbody tr:first-child, #events tbody tr:nth-child(2), #events tbody tr:nth-child(3)', 'instead of 2026-01-30');
    assert.equal(await page.evaluate(() => window.sameDocument), true);
    assert.equal(await page.inputValue('#key'), 'half a k');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'key');

    // The page of a database.
    await one.bringToFront();
    await has(one, '.health.good h1', 'words: serving 2026-01-31');
    await has(one, '.tiles', '21,000');
    await has(one, '#holders', '8 partitions, each wanted on 1 node');
    assert.equal(await one.locator('#events tbody tr', {hasText: 'users'}).count(), 0);
    await everybody(one, shots, 'database');
    await one.locator('nav a', {hasText: 'All databases'}).click();
    await has(one, '.health h1', 'Serving 2 databases.');

    // The runbook is on the node.
    await one.locator('nav a', {hasText: 'Runbook'}).click();
    await has(one, 'h1', 'Runbook');
    await everybody(one, shots, 'runbook');
    await one.locator('.toc a', {hasText: 'SequinsSlow'}).click();
    assert.ok(await one.locator('#sequinsslow').isVisible());
    await one.close();

    await page.bringToFront();
    await lookUp(page, 'words', 'no/such?key%');
    await has(page, '#answer', 'no such key');

    // It asks nobody while nobody looks.
    let asked = 0;
    page.on('request', () => asked++);
    await page.evaluate(() => {
      Object.defineProperty(document, 'hidden', {value: true, configurable: true});
      document.dispatchEvent(new Event('visibilitychange'));
    });
    await new Promise(done => setTimeout(done, 4000));
    assert.equal(asked, 0, 'a hidden page asks');
    await page.evaluate(() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); });
    await page.waitForResponse(url + '/');

    assert.deepEqual(complaints, []);
    await act('kill');
    await has(page, '#stale', 'This node cannot be asked');
    await axe(page, 'stale');
    complaints.length = 0; // that is complained of, rightly
  },

  async loading() {
    const page = await open('/');
    await has(page, '.health.good h1', 'Serving 1 database.');
    await has(page, row('databases', 'words') + ' .note.busy', /^2026-01-31: loading, \d+ %/);
    await page.locator('#databases progress').waitFor();
    const one = await open('/words/');
    await has(one, '.health.good h1', 'words: serving 2026-01-30');
    const bar = one.getByRole('progressbar', {name: 'loading 2026-01-31'});
    await one.waitForFunction(() => document.querySelector('.versions progress')?.value >= 2);
    const before = await bar.evaluate(e => e.value);
    await has(one, '.versions li.busy', /read, .* records .* left/);
    await one.waitForFunction(v => document.querySelector('.versions progress').value > v, before);
    await everybody(one, shots, 'loading');
    await page.bringToFront();
    await shoot(page, shots, 'loading-node');
    await axe(page, 'loading-node');
  },

  async hostile() {
    const markup = `<img src=x onerror="document.title='owned'">`;
    const page = await open('/');
    await has(page, '.health.warn h1', 'could not be loaded');
    await has(page, '#databases .note.bad', `part-${markup}`);
    await has(page, '#events .reason', `part-${markup}`);
    await lookUp(page, 'words', '"><img src=x onerror=alert(1)>');
    assert.equal(await page.locator('img, iframe, object').count(), 0);
    await page.locator('.health h1 a', {hasText: 'What to do'}).click();
    await has(page, '#sequinsversionfailed', 'SequinsVersionFailed');
    await page.goBack();
    await everybody(page, shots, 'error');
    await page.locator('#databases th a').click();
    await has(page, '.versions li.bad .bad', `part-${markup}`);
    assert.match(await page.title(), /^⚠ words – sequins/);
    await everybody(page, shots, 'error-database');
  },

  async scale() {
    for (const [path, name, most] of [['/', 'scale', 650], ['/features_000/', 'scale-database', 200]]) {
      const page = await open(path), size = (await page.content()).length >> 10;
      const session = await context.newCDPSession(page);
      await session.send('Performance.enable');
      const spent = async () => Object.fromEntries((await session.send('Performance.getMetrics')).metrics.map(m => [m.name, m.value]));
      await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0); // it is entered a little later
      const paint = await page.evaluate(() => Math.round(performance.getEntriesByName('first-contentful-paint')[0]?.startTime));
      const all = await page.evaluate(() => document.querySelectorAll('*').length), before = await spent();
      await page.waitForResponse(r => r.request().resourceType() === 'fetch');
      await page.waitForResponse(r => r.request().resourceType() === 'fetch'); // the first has been shown by now
      const after = await spent(), ms = k => Math.round(1000 * (after[k] - before[k]));
      console.log(`${name}: ${size} KiB, ${all} elements, first painted after ${paint} ms; a look: scripts ${ms('ScriptDuration')} ms, layout ${ms('LayoutDuration')} ms`);
      assert.ok(size < most && all < 7000, `${name}: ${size} KiB, ${all} elements`);
      assert.ok(ms('ScriptDuration') < 1500, `${name}: ${ms('ScriptDuration')} ms`);
      assert.equal(await page.locator('img').count(), 0);
      assert.ok(!(await page.title()).includes('owned'));
      await shoot(page, shots, name);
      await session.detach();
    }
    const page = await open('/');
    const names = await page.locator('#databases th a').allInnerTexts();
    assert.equal(names.length, 200);
    assert.equal(names[0], 'features_000'); // what somebody has to look at comes first
    await has(page, row('nodes', 'cache-03'), 'waits for version 2026-02-01 of features_000: loading, 41 %');
    await has(page, row('nodes', 'cache-22') + ' .bad', 'did not answer');
    await has(page, row('nodes', 'cache-02') + ' .warn', '128.0 GiB (6 %)');
  },

  // The states of scale, in fewer rows.
  async few() {
    const page = await open('/');
    assert.equal(await page.locator('#databases th a').count(), 12);
    assert.equal(await page.locator('img').count(), 0);
    await has(page, '#databases .note.bad', 'part-r-00003');
    await has(page, row('databases', 'features_004'), 'held: max_shrink');
    await has(page, row('nodes', 'cache-22') + ' .bad', 'did not answer');
    await everybody(page, shots, 'few');
    await page.locator('#databases th a').first().click();
    await has(page, '.health h1', 'features_000');
    await everybody(page, shots, 'few-database');
    await has(page, '#holders details[open] > .plain', '1 partition on no node: 77');
    await page.locator('#holders > details[open] > details summary').click();
    assert.equal(await page.locator('#holders > details[open] > details[open] .text tbody tr').count(), 29);
    await has(page, '#holders > details[open] > details[open] .text tr', 'cache-00.example.com:9599');
    await reader(page, 'the partitions as text');
    await shoot(page, shots, 'few-text');
    await axe(page, 'the partitions as text');
  },

  async shut() {
    const page = await open('/');
    await has(page, '.health.warn h1', 'This node wants a token.');
    assert.equal(await page.locator('#databases').count(), 0);
    await page.locator('#access').waitFor();
    assert.equal(await page.locator('#lookup').count(), 0);
    await everybody(page, shots, 'shut');
    const requests = [];
    context.on('request', r => requests.push(r));

    const enter = async token => { await page.fill('#token', token); await page.press('#token', 'Enter'); };
    await enter('nobody-knows-this-token');
    await has(page, '#refused', 'this token is not known');
    await enter('the-token-of-the-web');
    await has(page, '#refused', 'may not see status pages');
    assert.equal(await page.locator('#databases').count(), 0);
    await enter('the-token-of-the-operators');
    await has(page, '.health.good h1', 'Serving 2 databases.');
    assert.equal(await page.locator('#access').isVisible(), false);
    assert.equal(await page.inputValue('#token'), '');
    await lookUp(page, 'words', 'key-000007');
    await has(page, '#answer', 'found, 28 B in version 2026-01-30');
    await lookUp(page, 'users', 'key-000007');
    await has(page, '#answer', 'may not read this database');

    // It is kept for this tab, also on the page of a database, and for nobody else.
    await page.locator(row('databases', 'words') + ' a').click();
    await has(page, '.health h1', 'words: serving 2026-01-30');
    assert.equal(await page.locator('#databases').count(), 0);
    const other = await open('/none/');
    await has(other, '.health.warn h1', 'This node wants a token.');
    await other.locator('#access').waitFor();
    await other.fill('#token', 'the-token-of-the-operators');
    await other.press('#token', 'Enter');
    await has(other, '#stale', 'There is no such database');
    await other.goto(url + '/-/runbook'); // which needs no token
    await has(other, 'h1', 'Runbook');
    await other.close();

    // It goes into headers alone.
    assert.deepEqual(await context.cookies(), []);
    assert.equal(await page.evaluate(() => localStorage.length), 0);
    const sent = requests.filter(r => (r.headers().authorization || '').includes('the-token-of'));
    assert.ok(sent.length > 3, `${sent.length} requests with a token`);
    for (const r of requests) assert.ok(!r.url().includes('token') && r.method() === 'GET', r.url());

    // What has been shown is marked as old when the token has been taken out, and comes back with another.
    await act('take out');
    await has(page, '#stale', 'this token is not known');
    await enter('the-next-token-of-the-operators');
    await page.locator('#stale').waitFor({state: 'hidden'});
    await has(page, '.health.good h1', 'words: serving 2026-01-30');
    const refusals = complaints.filter(c => /status of 40[134]/.test(c));
    assert.deepEqual(complaints, refusals);
    complaints.length = 0; // what the node has refused, rightly
  },

  // What the server renders stays when the page updates itself.
  async refused() {
    const page = await open('/');
    await has(page, '.health.good h1', 'Serving 1 database.');
    await act('refuse');
    await has(page, '.health.warn h1', 'Serving 1 database, but the last reload of the configuration has failed.');
    await has(page, '.findings li', /The last reload .* has failed: .*nonsense: unknown key.* \(for \d+ s\)/);
    await has(page, '.findings a[href="/-/runbook#sequinsreloadfailed"]', 'Runbook');
    await act('accept');
    await has(page, '.health.good h1', 'Serving 1 database.');
    await page.locator('.findings li', {hasText: 'reload'}).waitFor({state: 'detached'}); // the disk of this machine may still be nearly full
  },

  async degraded() {
    const page = await open('/');
    await has(page, '.health.good h1', 'Serving 1 database.');
    await page.waitForFunction(() => document.querySelectorAll('#nodes tbody tr').length === 3);
    await has(page, '#nodes tbody tr', 'zone-b');
    await page.waitForFunction(() => [...document.querySelectorAll('[data-label="disk free"]')].filter(e => /^\d.* [KMGTP]iB \(\d+ %\)$/.test(e.textContent)).length === 3);
    await has(page, '.about', 'of disk free');
    const answerers = new Set();
    for (let i = 0; i < 12; i++) {
      await lookUp(page, 'words', `key-00000${i % 10}`);
      await has(page, '#answer', 'found');
      await page.waitForTimeout(50);
      answerers.add(await page.evaluate(() => [...document.querySelectorAll('#answer dt')].find(e => e.textContent === 'answered by').nextSibling.textContent));
    }
    assert.ok(answerers.size > 1 && answerers.has('this node'), 'answered by ' + [...answerers]);
    await everybody(page, shots, 'cluster');

    await act('kill');
    await has(page, '.health.warn h1', '1 node did not answer');
    assert.equal(await text(page, '#said').catch(() => page.locator('#said').textContent()), await page.evaluate(() => document.getElementById('main').dataset.said));
    await has(page, '#nodes tbody tr .bad', 'did not answer');
    await has(page, '.health.warn h1 a[href="/-/runbook#sequinsdown"]', 'What to do');
    await has(page, '.health.warn h1', 'too few nodes hold'); // its session has ended
    await shoot(page, shots, 'degraded');
    await page.locator('#databases th a').click();
    await has(page, '#holders details[open] > .plain', 'on 1 node');
    await everybody(page, shots, 'degraded-database');
  },
};

// without looks at what those see who have no scripts.
async function without() {
  const browser = await chromium.launch({executablePath, args});
  const page = await (await browser.newContext({javaScriptEnabled: false})).newPage();
  await page.goto(url);
  assert.match(await text(page, 'h1'), /Serving \d database|Ready/);
  assert.match(await text(page, '#databases'), /2026-01-3\d/);
  assert.match(await text(page, '#events'), /found/);
  assert.equal(await page.locator('#lookup').isVisible(), false);
  await page.locator('#databases th a').first().click();
  await has(page, '#holders', 'partitions, each wanted on 1 node');
  if (scenario === 'loading') assert.equal(await page.locator('.versions progress').count(), 1);
  if (shots) await page.screenshot({path: join(shots, `${scenario}-plain.png`), fullPage: true});
  await browser.close();
}

try {
  if (scenario === 'loading') await without();
  await scenarios[scenario]();
  assert.deepEqual(complaints, []);
} catch (e) {
  console.error(e.stack, complaints);
  process.exitCode = 1;
} finally {
  await context.close();
  await rm(profile, {recursive: true, force: true});
  process.stdin.destroy();
}

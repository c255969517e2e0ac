// One scenario over the status page: node page.mjs SCENARIO URL CHROMIUM SCREENSHOTS. Exits with 1 and says why
// if the page does not show what it should.
import assert from 'node:assert/strict';
import {mkdtemp, rm} from 'node:fs/promises';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {createInterface} from 'node:readline';
import {chromium} from 'playwright-core';

const [scenario, url, executablePath, shots] = process.argv.slice(2);
const answers = createInterface({input: process.stdin})[Symbol.asyncIterator]();

// act asks the test for something, and waits until it is done.
async function act(what) {
  console.log('> ' + what);
  await answers.next();
}

const profile = await mkdtemp(join(tmpdir(), 'sequins-browser-'));
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: {width: 1100, height: 800},
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
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

// shoot takes the screenshots, and looks whether all of the page fits the window, a phone's and others.
async function shoot(page, name) {
  for (const [suffix, colorScheme, width] of [['light', 'light', 1100], ['dark', 'dark', 1100], ['phone', 'light', 380], ['phone-dark', 'dark', 380]]) {
    await page.emulateMedia({colorScheme});
    await page.setViewportSize({width, height: 800});
    await page.screenshot({path: join(shots, `${name}-${suffix}.png`), fullPage: true});
    await fits(page, name, width);
  }
  for (const width of [320, 600, 700, 959, 970]) {
    await page.setViewportSize({width, height: 800});
    await fits(page, name, width);
  }
  await page.setViewportSize({width: 1100, height: 800});
}

async function fits(page, name, width) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${name}: ${wide} pixels wide in a window of ${width}`);
}

const has = (page, selector, text) => page.locator(selector, {hasText: text}).first().waitFor();
const text = (page, selector) => page.locator(selector).first().innerText();

async function lookUp(page, db, key) {
  await page.selectOption('#db', db);
  await page.fill('#key', key);
  await page.press('#key', 'Enter');
  await page.locator('#answer dl, #answer p').first().waitFor();
}

const scenarios = {
  async healthy() {
    const page = await open('/');
    await has(page, 'h1.good', 'Serving 2 databases.');
    await has(page, 'section[data-name=words]', '20,000');
    assert.equal(await page.locator('section[data-name]').count(), 2);
    const cells = await page.locator('section[data-name=users] svg *').count();
    assert.ok(cells < 40, `${cells} elements for 200 partitions`);

    // A key is looked up with the keyboard alone.
    await page.focus('#db');
    await page.keyboard.type('words');
    await page.keyboard.press('Tab');
    await page.keyboard.type('key-000007');
    await page.keyboard.press('Enter');
    await has(page, '#answer', 'found, 28 B in version 2026-01-30');
    await has(page, '#answer', 'this node');
    await has(page, '#answer', 'mod 8 is partition');
    assert.ok(!(await text(page, 'body')).includes('secret'), 'the value is shown');
    await shoot(page, 'healthy');

    // What is on the page changes by itself, and what one is doing is left alone.
    await page.evaluate(() => { window.sameDocument = true; });
    await page.locator('section[data-name=users] summary').first().click();
    await page.fill('#key', 'half a k');
    await act('publish');
    await has(page, 'section[data-name=words] .good', 'serving 2026-01-31');
    await has(page, 'section[data-name=words]', '21,000');
    assert.equal(await page.evaluate(() => window.sameDocument), true);
    assert.equal(await page.inputValue('#key'), 'half a k');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'key');
    assert.equal(await page.locator('section[data-name=users] details[open]').count(), 0);

    await lookUp(page, 'words', 'no/such?key%');
    await has(page, '#answer', 'no such key');
    await page.hover('section[data-name=words] svg.strip');
    await page.waitForFunction(() => /^partition \d: 1 replica$/.test(document.querySelector('section[data-name=words] svg.strip title').textContent));

    const one = await open('/users/');
    await has(one, 'section[data-name=users]', 'serving 2026-01-31T04');
    assert.equal(await one.locator('section[data-name]').count(), 1);

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
    complaints.length = 0; // that is complained of, rightly
  },

  async loading() {
    const page = await open('/');
    await has(page, 'h1.good', 'Serving 1 database.');
    await has(page, 'section[data-name=words] .good', 'serving 2026-01-30');
    const bar = page.getByRole('progressbar', {name: 'loading 2026-01-31'});
    await page.waitForFunction(() => document.querySelector('progress')?.value >= 2);
    const before = await bar.evaluate(e => e.value);
    await has(page, '.versions li.busy', /read, .* records .* left/);
    await page.waitForFunction(v => document.querySelector('progress').value > v, before);
    await shoot(page, 'loading');
  },

  async hostile() {
    const page = await open('/');
    await has(page, 'h1.warn', 'could not be loaded');
    await has(page, '.versions li.bad .bad', `part-<img src=x onerror="document.title='owned'">`);
    await has(page, 'ol.hot li code', '%3Cimg%20src%3Dx%20onerror%3D%22document.title%3D%27owned%27%22%3E');
    await has(page, 'ol.hot li', '100.0 % of the reads');
    await lookUp(page, 'words', '"><img src=x onerror=alert(1)>');
    assert.equal(await page.locator('img, iframe, object').count(), 0);
    assert.match(await page.title(), /^⚠ sequins/);
    await shoot(page, 'error');
    await waiting(page);
    await large(page);
  },

  async shut() {
    const page = await open('/');
    await has(page, 'h1.warn', 'This node wants a token.');
    assert.equal(await page.locator('#status *').count(), 0);
    await page.locator('#access').waitFor();
    assert.equal(await page.locator('#lookup').isVisible(), false);
    await shoot(page, 'shut');
    const requests = [];
    context.on('request', r => requests.push(r));

    const enter = async token => { await page.fill('#token', token); await page.press('#token', 'Enter'); };
    await enter('nobody-knows-this-token');
    await has(page, '#refused', 'this token is not known');
    await enter('the-token-of-the-web');
    await has(page, '#refused', 'may not see status pages');
    assert.equal(await page.locator('#status *').count(), 0);
    await enter('the-token-of-the-operators');
    await has(page, 'h1.good', 'Serving 2 databases.');
    assert.equal(await page.locator('#access').isVisible(), false);
    assert.equal(await page.inputValue('#token'), '');
    await lookUp(page, 'words', 'key-000007');
    await has(page, '#answer', 'found, 28 B in version 2026-01-30');
    await lookUp(page, 'users', 'key-000007');
    await has(page, '#answer', 'may not read this database');

    // It is kept for this tab, also on the page of a database, and for nobody else.
    await page.locator('section[data-name=words] h2 a').click();
    await has(page, 'section[data-name=words]', 'serving 2026-01-30');
    assert.equal(await page.locator('section[data-name]').count(), 1);
    const other = await open('/none/');
    await has(other, 'h1.warn', 'This node wants a token.');
    await other.locator('#access').waitFor();
    await other.fill('#token', 'the-token-of-the-operators');
    await other.press('#token', 'Enter');
    await has(other, '#status', 'no such db');
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
    await has(page, 'h1.good', 'Serving 2 databases.');
    await page.locator('#stale').waitFor({state: 'hidden'});
    const refusals = complaints.filter(c => /status of 40[13]/.test(c));
    assert.deepEqual(complaints, refusals);
    complaints.length = 0; // what the node has refused, rightly
  },

  // What the server renders stays when the page updates itself.
  async refused() {
    const page = await open('/');
    await has(page, 'h1.good', 'Serving 1 database.');
    await act('refuse');
    await has(page, 'h1.warn', 'the last reload of the configuration has failed');
    await has(page, '#notes .note', 'The reload of the configuration has failed since');
    await has(page, '#notes .note', 'nonsense: unknown key');
    await act('accept');
    await has(page, 'h1.good', 'Serving 1 database.');
  },

  async degraded() {
    const page = await open('/');
    await has(page, 'h1.good', 'Serving 1 database.');
    await page.waitForFunction(() => document.querySelectorAll('tbody tr').length === 3);
    await has(page, 'tbody tr', 'zone-b');
    await page.waitForFunction(() => [...document.querySelectorAll('[data-label="disk free"]')].filter(e => /^\d.* [KMGTP]iB \(\d+ %\)$/.test(e.textContent)).length === 3);
    await has(page, '#about', 'of disk free');
    const answerers = new Set();
    for (let i = 0; i < 12; i++) {
      await lookUp(page, 'words', `key-00000${i % 10}`);
      await has(page, '#answer', 'found');
      await page.waitForTimeout(50);
      answerers.add(await page.evaluate(() => [...document.querySelectorAll('#answer dt')].find(e => e.textContent === 'answered by').nextSibling.textContent));
    }
    assert.ok(answerers.size > 1 && answerers.has('this node'), 'answered by ' + [...answerers]);
    await shoot(page, 'cluster');

    await act('kill');
    await has(page, 'h1.warn', '1 node did not answer');
    await has(page, 'tbody tr .bad', 'did not answer');
    await has(page, '.legend', 'too few replicas');
    await shoot(page, 'degraded');
    await has(page, 'h1.warn', 'too few nodes hold'); // its session has ended
  },
};

// waiting shows the page a cluster in the middle of an upgrade, in which everybody waits for something else.
async function waiting(page) {
  const at = new Date(Date.now() - 5 * 60000).toISOString(), gib = 2 ** 30;
  const old = {state: 'ACTIVE', current: true, active_at: at, records: 5000, bytes: gib, partitions: [0, 1, 2, 3, 4, 5]};
  const n = (name, node) => ({[name]: {created_at: at, partitions: [], ...node}});
  const progress = {files: 6, files_done: 2, bytes: 6 * gib, bytes_done: 2 * gib, records: 1000, partitions: 4, partitions_done: 1};
  const version = (path, nodes) => ({path, num_partitions: 6, target_replication: 2, missing_partitions: 0, underreplicated_partitions: 0, nodes});
  const disk = (bytes_free, low) => ({bytes: 100 * gib, bytes_free, bytes_blocks: gib, low});
  const status = {
    node: 'n1:9599', shard_id: 'one', zone: 'a', build: 'v2.1.0', started_at: at, level: 'good', health: 'Serving 1 database.', disk: disk(45 * gib),
    peers: {
      'n2:9599': {shard_id: 'two', zone: 'b', build: 'v2.1.0', started_at: at, disk: disk(8.5 * gib, true)},
      'n3:9599': {shard_id: 'three', zone: 'c', build: 'v2.0.0', started_at: at},
      'n4:9599': {shard_id: 'four', zone: 'c', error: 'Get "http://n4:9599/?proxy=status": connection refused'},
    },
    dbs: {words: {versions: {
      1: version('/1', {...n('n1:9599', old), ...n('n2:9599', old), ...n('n3:9599', old)}),
      2: version('/2', {
        ...n('n1:9599', {state: 'BUILDING', partitions: [0, 2], detail: 'prepared, waiting for other nodes to hold 4 partitions: 1, 3-5'}),
        ...n('n2:9599', {state: 'BUILDING', partitions: [1], detail: 'loading', progress}),
      }),
    }}}};
  await page.route(url + '/', route => route.fulfill({json: status}));
  const row = name => `tbody tr:has(th:text-matches("^${name}"))`;
  await has(page, row('n1') + ' .warn', 'words 2: prepared, waiting for other nodes to hold 4 partitions: 1, 3-5');
  await has(page, row('n2') + ' .warn', 'words 2: 3 of 4 partitions to load');
  await has(page, row('n2') + ' [data-label="disk free"] .warn', '8.5 GiB (8 %)');
  await has(page, row('n3') + ' .warn', 'words 2: not found yet');
  await has(page, row('n4') + ' .bad', 'did not answer');
  assert.equal(await page.locator(row('n1') + ' [data-label="disk free"] .warn').count(), 0);
  assert.equal(await page.locator(row('n4') + ' .warn').count(), 0, 'what is not known of a node is said of it');
  await shoot(page, 'waiting');
  await page.unroute(url + '/');
}

// large shows the page a cluster of a size that no test can start: it has to stay quick, and small.
async function large(page) {
  const partitions = 10000, nodes = {}, peers = {};
  for (let i = 0; i < 200; i++) nodes['node' + i + ':9599'] = {state: 'ACTIVE', current: true, records: 50, bytes: 1 << 20, partitions: []};
  for (let p = 0; p < partitions; p++) for (let r = 0; r < (p === 77 ? 1 : 3); r++) nodes[`node${(p * 7 + r) % 200}:9599`].partitions.push(p);
  for (const name of Object.keys(nodes)) peers[name] = {shard_id: name};
  delete peers['node0:9599'];
  const status = {node: 'node0:9599', shard_id: 's', level: 'warn', health: 'Large.', peers, dbs: {words: {versions: {'1': {
    path: '/1', num_partitions: partitions, target_replication: 3, missing_partitions: 0, underreplicated_partitions: 1, nodes}}}}};
  await page.route(url + '/', route => route.fulfill({json: status}));
  await has(page, 'h1.warn', 'Large.');
  await has(page, '.legend', 'too few replicas: 1 (77)');
  await has(page, '.legend', 'each cell: 105 partitions');
  const all = await page.evaluate(() => document.querySelectorAll('*').length);
  const row = await page.evaluate(() => Math.max(...[...document.querySelectorAll('svg')].map(e => e.querySelectorAll('*').length)));
  assert.ok(row < 8 && all < 5000, `${row} elements in a row, ${all} on the page`);
  await page.screenshot({path: join(shots, 'large-light.png')});
}

// without looks at what those see who have no scripts.
async function without() {
  const browser = await chromium.launch({executablePath, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync']});
  const page = await (await browser.newContext({javaScriptEnabled: false})).newPage();
  await page.goto(url);
  assert.match(await text(page, 'h1'), /Serving \d database|Ready/);
  assert.match(await text(page, 'main'), /serving /);
  assert.equal(await page.locator('#lookup').isVisible(), false);
  if (scenario === 'loading') assert.equal(await page.locator('progress').count(), 1);
  await page.screenshot({path: join(shots, `${scenario}-plain.png`), fullPage: true});
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

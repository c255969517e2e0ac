// Package browser looks at the status page as people do: in headless Chromium, driven by Playwright, over real
// sequins processes that are healthy, loading, failing, and a cluster that has lost a node.
//
// A test makes a situation and hands its address to page.mjs, which holds the page against what it has to show and
// takes screenshots of it into .cache/screenshots: light, dark, and as wide as a phone. Where a situation has to
// change meanwhile, page.mjs asks for it (see script).
package browser

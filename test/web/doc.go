// Package web tests HTTP as tools, caches and libraries use it, against real nodes: curl, Python's requests, urllib3 and
// zstandard, WebOb's reading of Accept-Encoding, nginx as a cache, and schemathesis, which makes requests from the description of
// the interface. Pages of other origins are tested in test/browser.
package web

// Package server is the HTTP server: it answers requests for keys with package reads, and serves the status,
// health and debug pages. Only this package maps outcomes of reads to status codes.
//
// Server.Serve accepts connections (listener.go) and runs conn.serve for each (conn.go). As long as requests
// are plain, conn.serve answers them itself, because net/http needs twice the CPU time for them
// (fastpath.go). A plain request is a GET of HTTP/1.1 for a key, without condition, range or body (plain.go), whose answer
// is not compressed.
// The first request that is not plain hands the connection over to an http.Server permanently, with the bytes
// that have arrived; nothing has been looked up at that point. Server.handle (handler.go)
// answers requests of the http.Server: HEAD, conditions and ranges (http.ServeContent), explanations, pages, and unusual requests.
// net/http itself answers requests that it cannot parse.
//
// Both front ends fill in a request (request.go), the pooled state of one request, and call:
//
//	request.fromNode   decides whether another node asks (access.go)
//	request.allowed    checks the token, and whether it may read the db (access.go)
//	reads.Read.Do      looks the key up, here or on other nodes
//	request.prepare    turns the outcome into a status and header fields
//
// and then render the prepared answer: request.send in the fast path, request.respond for net/http. A small
// value is copied once, from its page to the buffer that is written to the socket; a large one is read while
// it is sent. A plain request allocates nothing.
//
// Headers of all connections together take a bounded memory (headers.go).
//
// What answers have in common is in Delivery (delivery.go), which can change while the server runs: which pages may read them
// (cors.go), how long caches may keep them, and whether they are compressed (encode.go). request.addShared adds its fields
// to the header of each answer, on both paths, when everything else is known. Errors are text or JSON (problem.go).
//
// GET /<db>?prefix= and its like (scan.go) stream ordered reads. GET /<db>?partitions (partitions.go) is the map from
// keys to nodes, for clients that ask replicas directly.
//
// The pages (pages.go, package statuspage) are made from Catalog.Status.
//
// Notes for clients: an empty key cannot be requested, because /<db>/ is the status of the db. Parameters
// other than those above are ignored, except in ordered reads. A request for several ranges gets the whole value.
// Conditions with a date are ignored, because the date is that of the version, not of the value (see restrict). A request with a body is answered without reading the body, and the connection
// is closed.
package server

// Package server owns HTTP: it answers requests for keys from package reads, and has the status, health and
// debug pages. An outcome of a read becomes a status code here and nowhere else.
//
// Server.Serve accepts connections (listener.go) and runs conn.serve for each (conn.go). While requests are
// plain, conn.serve answers them itself: a plain request is a GET of HTTP/1.1 for a key, with no condition,
// no range and no body (plain.go). This is the lane (lane.go), because net/http needs twice the processor
// time for such a request. At the first request that is not plain, the connection goes to an http.Server for
// good, with the bytes that have arrived; the lane has looked nothing up by then. A connection that has
// agreed on HTTP/2 goes there before anything is read from it. Server.handle (handler.go) answers what
// arrives there: HEAD, conditions and ranges (http.ServeContent), explanations, pages, and requests that are
// odd. What net/http cannot read as a request it answers by itself.
//
// Both front ends fill in a request (request.go), the pooled state of one request, and call serveKey:
//
//	request.allowed    is there a token, and may it read the db (access.go)
//	reads.Read.Do      looks the key up, here or on other nodes
//	request.prepare    turns the outcome into a status and header fields
//
// and then render the prepared answer: request.send in the lane, request.respond for net/http. A small value
// is copied once, from the page it is in to the buffer that goes to the socket; a large one is read while it
// is sent. A plain request allocates nothing.
//
// The pages (pages.go, page.go, status.go) are made from Catalog.Status.
//
// What a client may want to know: a key that is empty cannot be asked for, /<db>/ is the db's status.
// Parameters other than proxy and explain are ignored. Of several ranges none is sent alone, but the whole
// value. If-Modified-Since and If-Range with a date prove nothing about a value, since the date is the
// version's (see restrict). A request with a body is answered without reading it, and the connection closed.
package server

// Package server owns HTTP: the way of a GET, the status and health pages, and
// the debug pages. An error becomes a status code here and nowhere else.
//
// A request comes through conn (deadlines, memory of idle connections) and
// fasthttp into Server.handle. The usual one, a GET for a key and nothing else, does
// not come as far as fasthttp: plain.go knows it, and atonce.go answers it on the
// connection, by the same steps and to the byte as follows. parseTarget takes the raw
// request target apart; the key is bytes, decoded once. request.allowed (access.go) asks
// for a token if one is wanted. Catalog.Set finds the db's set of versions,
// Set.Acquire the current one, Handle.Partition and Handle.Get the value, and
// request.answer holds it against the request's conditions and range. fasthttp
// writes the response after the handler has returned; so the value becomes a
// body that holds the handle until fasthttp closes it, and is copied only once,
// from the page it lies in (or, a large one, chunk by chunk) into the buffer
// that goes to the socket. What has to be remembered meanwhile is in a pooled
// request, so that a hit allocates nothing.
//
// Everything else a client can ask for (status.go, page.go) is made from
// Catalog.Status by ordinary net/http handlers.
//
// What a client may want to know beyond the table of the design: a key that is
// empty cannot be asked for, /<db>/ is the db's status. Parameters other than
// proxy and explain (explain.go) are ignored. Of several ranges none is sent alone, but the whole value.
// If-Modified-Since and If-Range with a date prove nothing about a value, since
// the date is the version's: see choose. A request with a body is answered
// without reading it, and the connection closed.
package server

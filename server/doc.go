// Package server owns HTTP: the way of a GET, the status and health pages, and
// the debug pages. An error becomes a status code here and nowhere else.
//
// A request comes through conn (deadlines, memory of idle connections) and
// fasthttp into Server.handle. parseTarget takes the raw request target apart;
// the key is bytes, decoded once. Catalog.Set finds the db's set of versions,
// Set.Acquire the current one, Handle.Partition and Handle.Get the value, and
// request.answer holds it against the request's conditions and range. A value
// of up to 64 KiB is copied into the response and the handle released; a larger
// one is streamed by a body that holds the handle until fasthttp closes it.
// What has to be remembered meanwhile is in a pooled request, so that a hit
// allocates nothing.
//
// Everything else a client can ask for (status.go, page.go) is made from
// Catalog.Status by ordinary net/http handlers.
package server

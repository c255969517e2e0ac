package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sequins/observe/status"
)

// Who may have what: each route, and each spelling of the parameter of nodes, with each kind of client.
func TestRightsOfEachRoute(t *testing.T) {
	const secret = "the-secret-of-the-cluster"
	c := catalogOf(t, map[string]string{"k": "value"})
	c.state = status.Status{DBs: map[string]status.DB{"db": {}}}
	tokens, _ := openTokens(t, tokensFile)
	s := start(t, c, testOptions{Tokens: tokens, PeerSecret: secret})
	s.opts.Diff = func(_ context.Context, w http.ResponseWriter, _, _ string, _ bool) (int, string) {
		fmt.Fprint(w, "differences")
		return 200, ""
	}
	s.opts.Blocks = func(w http.ResponseWriter, _ *http.Request, _, _ string) (int, string) {
		fmt.Fprint(w, "node: true")
		return 200, ""
	}
	s.opts.Serving = func(w http.ResponseWriter) { fmt.Fprint(w, "node: true") }
	clients := [...]struct{ name, field string }{
		{"no token", "X: y"}, {"a wrong token", "Authorization: Bearer nobody-knows-this-token"}, {"a reader's token", webToken}, {"a token for pages", opsToken},
		{"the secret", "X-Sequins-Cluster: " + secret}, {"another secret", "X-Sequins-Cluster: another-" + secret},
	}
	const (
		reads = "401 401 200 403 401 401"
		pages = "401 401 403 200 401 401"
		all   = "200 200 200 200 200 200"
		nodes = "403 403 403 403 200 403"
		wrong = "400 400 400 400 400 400"
	)
	for request, want := range map[string]string{
		"GET /db/k": reads, "GET /db/k?x=y": reads, "GET /db/k?proxy": reads, "GET /db/k?proxy=": reads, "HEAD /db/k": reads,
		"GET /db/k?explain": "401 401 403 403 401 401", "GET /db/k?%65xplain": "401 401 403 403 401 401",
		"GET /db/k?proxy=v1": nodes, "GET /db/k?%70roxy=v1": nodes, "GET /db/k?x&proxy=v1": nodes, "HEAD /db/k?proxy=v1": nodes, "GET /db/k?proxy=&proxy=v1": nodes,
		"GET /db/k?proxy=v1&explain": nodes, "GET /db/k?proxy=v1&proxy=v1": wrong, "GET /db/k?proxy=%": wrong,

		"POST /db": reads, "GET /db?key=k": reads, "GET /db?k%65y=k": reads, "POST /db?proxy=": reads,
		"POST /db?proxy=v1": nodes, "POST /db?prox%79=v1": nodes, "GET /db?key=k&proxy=v1": nodes,

		"GET /db?prefix=k": reads, "GET /db?%70refix=k": reads, "GET /db?count": reads, "GET /db?partitions": reads,
		"GET /db?proxy=v1&page=AwEAAAAAAAAAAAAAAAAAAAAAAP____8AAAAA": nodes, "GET /db?page=AwEAAAAAAAAAAAAAAAAAAAAAAP____8AAAAA": "401 401 400 403 401 401", "GET /db?proxy=&page=AwEAAAAAAAAAAAAAAAAAAAAAAP____8AAAAA": "401 401 400 403 401 401",

		"GET /db?diff=v1..v2": reads, "GET /db?diff=v1..v2&proxy=": reads, "GET /db?diff=v1..v2&proxy": reads,
		"GET /db?diff=v1..v2&proxy=diff": nodes, "GET /db?diff=v1..v2&%70roxy=diff": nodes, "GET /db?diff=v1..v2&%70roxy=": reads,

		"GET /db?blocks&proxy=v1": nodes, "GET /db?blocks&%70roxy=v1": nodes, "GET /db?block=0&proxy=v1": nodes,
		"GET /db?blocks": "401 401 400 403 401 401", "GET /db?block=0&proxy=": "401 401 400 403 401 401",

		"GET /": pages, "GET /db": pages, "GET /db?proxy=": pages, "GET /?proxy=": pages,
		"GET /?proxy=status": nodes, "GET /?proxy=settings": nodes, "GET /?proxy=serving": nodes, "GET /?%70roxy=settings": nodes, "GET /db?proxy=status": nodes,

		"GET /livez": all, "GET /readyz": all, "GET /livez?proxy=v1": all, "GET /readyz?proxy=v1": all, "GET /healthz?proxy=v1": "404 404 404 404 404 404",
		"GET /readyz?db=db": "401 401 200 200 401 401", "GET /readyz?db=db&proxy=v1": "401 401 200 200 401 401",
		"GET /-/runbook": all, "GET /-/openapi.yaml": "401 401 200 200 401 401", "GET /-/openapi.yaml?proxy=x": "401 401 200 200 401 401",
		"PUT /db/k": "405 405 405 405 405 405", "PUT /db/k?proxy=v1": "405 405 405 405 405 405",
	} {
		method, target, _ := strings.Cut(request, " ")
		for i, want := range strings.Fields(want) {
			lines, body := method+" "+target+" HTTP/1.1\r\nHost: x\r\n"+clients[i].field+"\r\n", ""
			if method == "POST" {
				body = `{"keys":["k"]}`
				lines += fmt.Sprintf("Content-Length: %d\r\n", len(body))
			}
			for _, other := range []string{"", "Range: bytes=0-\r\n"} { // the second is for net/http in any case
				got := s.raw(t, method, lines+other+"\r\n"+body)
				if got.status == 206 {
					got.status = 200
				}
				if fmt.Sprint(got.status) != want || strings.HasPrefix(got.body, "node: ") && (got.body == "node: true") != (clients[i].name == "the secret") {
					t.Errorf("%s with %s: %d %s", request, clients[i].name, got.status, got.body)
				}
			}
		}
	}
}

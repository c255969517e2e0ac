//go:build integration

package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
	"sequins/test/process"
)

// TestTokens has two nodes that want tokens, each with half of the data: what one has to ask the other for, it
// is given as if the client had asked there, and is not given without its token.
func TestTokens(t *testing.T) {
	t.Parallel()
	const (
		web   = "Authorization: Bearer the-token-of-the-web\r\n"
		other = "Authorization: Bearer the-token-of-the-others\r\n"
		ops   = "Authorization: Bearer the-token-of-the-operators\r\n"
	)
	file := filepath.Join(t.TempDir(), "tokens")
	expect.NoError(t, os.WriteFile(file, []byte("web the-token-of-the-web db\nother the-token-of-the-others others\nops the-token-of-the-operators db pages\n"), 0o600))
	z := sharedZookeeper(t)
	c := newCluster(t, z, settings{
		data: dataset{keys: 1000, partitions: 8}, members: 2, replication: 1, extra: "auth.tokens_file = \"" + file + "\"\n",
		sharding: []string{`secret = "the-secret-of-the-cluster"`},
	})
	for _, m := range c.members {
		m.config.Header = ops
	}
	version := versionName(1)
	c.begin(t, version)
	c.waitWhole(t, z.look(t), version)

	for i, m := range c.members {
		peer, proxied := c.members[1-i], 0
		for p, key := range c.data.ofEach(version) {
			target := "/" + db + "/" + key
			value, _ := c.data.value(key, version)
			r := ask(t, m, target, web)
			if r.Code != 200 || string(r.Body) != value {
				t.Errorf("%s, partition %d: %d: %s", m.name, p, r.Code, r.Body)
			}
			for header, want := range map[string]int{"": 401, other: 403, strings.ToUpper(web): 401} {
				for _, query := range []string{"", "?proxy=" + version, "?explain"} {
					want := want
					if strings.HasPrefix(query, "?proxy=") {
						want = 403 // for nodes alone
					}
					if r := ask(t, m, target+query, header); r.Code != want || r.Version() != "" {
						t.Errorf("%s, %s, %q: %d", m.name, target+query, header, r.Code)
					}
				}
			}
			if r.Header.Get("X-Sequins-Proxied-To") == "" {
				continue
			}
			proxied++
			var e struct {
				Found      bool   `json:"found"`
				AnsweredBy string `json:"answered_by"`
			}
			if r := ask(t, m, target+"?explain", ops); json.Unmarshal(r.Body, &e) != nil || !e.Found || e.AnsweredBy != peer.addr() {
				t.Errorf("%s, %s is explained with %d: %s", m.name, key, r.Code, r.Body)
			}
		}
		if proxied != c.data.partitions/2 {
			t.Errorf("%s has asked for %d partitions", m.name, proxied)
		}
		process.Eventually(t, m.name+" shows how the other is", func() bool {
			p, known := m.status(t).Peers[peer.addr()]
			return known && p.Error == ""
		})
		if r := ask(t, m, "/", ""); r.Code != 401 {
			t.Errorf("%s shows its status to a stranger: %d", m.name, r.Code)
		}
	}
	for _, m := range c.members {
		if strings.Contains(m.node.Log(), "the-token") || strings.Contains(m.node.Log(), "the-secret") {
			t.Errorf("%s has logged a token", m.name)
		}
	}
}

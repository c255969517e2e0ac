package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sequins/test/expect"
)

const secret = "correct-horse-battery" // the plain token of these tests

func hashed(token string) string {
	d := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(d[:])
}

func write(t testing.TB, file, text string) {
	t.Helper()
	expect.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// open writes a file and opens it.
func open(t testing.TB, text string) *Tokens {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, text)
	tokens, err := Open(file)
	expect.NoError(t, err)
	return tokens
}

func TestFind(t *testing.T) {
	tokens := open(t, "# a comment\n\n"+
		"web\t"+secret+"  users,products,day=1%2C2\r\n"+
		"  ops "+hashed("the.token~of+the/operators==")+" * pages\n"+
		"monitor sha256:"+strings.ToUpper(hashed("another-long-token")[7:])+" - pages")
	tests := []struct {
		header    string
		name      string // "": no grant
		presented bool
		reads     string
		pages     bool
	}{
		{"Bearer " + secret, "web", true, "users products", false},
		{"bearer   " + secret, "web", true, "users products", false},
		{"Bearer the.token~of+the/operators==", "ops", true, "users products other", true},
		{"BEARER another-long-token", "monitor", true, "", true},
		{"", "", false, "", false},
		{"Bearer", "", false, "", false},
		{"Bearer ", "", false, "", false},
		{"Bearer    ", "", false, "", false},
		{"Basic " + secret, "", false, "", false},
		{secret, "", false, "", false},
		{"Bearer" + secret, "", false, "", false},
		{"Bearer " + secret + " ", "", true, "", false},
		{"Bearer " + secret[1:], "", true, "", false},
		{"Bearer " + secret + "x", "", true, "", false},
		{"Bearer " + strings.ToUpper(secret), "", true, "", false},
		{"Bearer " + hashed("another-long-token"), "", true, "", false}, // the hash in the file is not a token
		{"Bearer " + hashed("another-long-token")[7:], "", true, "", false},
		{"Bearer " + strings.Repeat("x", MaxToken+1), "", true, "", false},
	}
	for _, test := range tests {
		g, presented := tokens.Find([]byte(test.header))
		if presented != test.presented || (g == nil) != (test.name == "") {
			t.Errorf("%.50q: %+v, presented %t", test.header, g, presented)
			continue
		}
		if g == nil {
			continue
		}
		if g.Name != test.name || g.Pages != test.pages {
			t.Errorf("%.50q: %+v", test.header, g)
		}
		if g.Reads([]byte("day=1,2")) != (test.reads != "") {
			t.Errorf("%s reads a name with a comma: %t", g.Name, test.reads == "")
		}
		for _, db := range []string{"users", "products", "other"} {
			if g.Reads([]byte(db)) != strings.Contains(test.reads, db) {
				t.Errorf("%s reads %s: %t", g.Name, db, g.Reads([]byte(db)))
			}
		}
		for _, db := range []string{"", "*", "-", "user", "users,products", "day=1", "day=1%2C2"} {
			if g.Reads([]byte(db)) && test.name != "ops" {
				t.Errorf("%s reads %q", g.Name, db)
			}
		}
	}
}

func TestBadFiles(t *testing.T) {
	good := "web " + secret + " users\n"
	many := new(strings.Builder)
	for i := range MaxTokens + 1 {
		fmt.Fprintf(many, "t%d %s *\n", i, hashed(fmt.Sprint(i)))
	}
	for text, want := range map[string]string{
		"":                          "tokens: no token in the file",
		"# nothing\n":               "tokens: no token in the file",
		good + "web":                "tokens:2: want: name token databases [pages]",
		good + "\n\nx y z u v":      "tokens:4: want: ",
		".web " + secret + " users": "tokens:1: the first field is not a name",
		strings.Repeat("n", 65) + " " + secret + " *": "tokens:1: the first field is not a name",
		"web short *":                                            "tokens:1: the second field is not a token: 5 bytes, want 16 to 512",
		"web " + strings.Repeat("x", 513) + " *":                 "tokens:1: the second field is not a token: 513 bytes",
		"web " + secret + "\x00 *":                               "tokens:1: the second field is not a token: want letters",
		"web =" + secret + " *":                                  "tokens:1: the second field is not a token: want letters",
		"web ================= *":                                "tokens:1: the second field is not a token: want letters",
		"web sha256:" + strings.Repeat("0", 63) + " *":           "tokens:1: the second field is sha256: without 64",
		"web sha256:" + strings.Repeat("g", 64) + " *":           "tokens:1: the second field is sha256: without 64",
		"web sha256: *":                                          "tokens:1: the second field is sha256: without 64",
		"web " + secret + " users,":                              "tokens:1: the third field is not *",
		"web " + secret + " users,*":                             "tokens:1: the third field is not *",
		"web " + secret + " a/b":                                 "tokens:1: the third field is not *",
		"web " + secret + " * page":                              "tokens:1: the fourth field is not pages",
		"web " + secret + " -":                                   "tokens:1: the token permits nothing",
		good + "# x\nweb " + secret + "2 *":                      "tokens:3: same name as line 1",
		good + "web2 " + secret + " *":                           "tokens:2: same token as line 1",
		good + "web2 " + hashed(secret) + " *":                   "tokens:2: same token as line 1",
		many.String():                                            "tokens:1001: more than 1000 tokens",
		good + "users " + strings.Repeat("x", maxFile-len(good)): "is larger than 1048576 bytes",
	} {
		file := filepath.Join(t.TempDir(), "tokens")
		write(t, file, text)
		_, err := Open(file)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.60q: %v; want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "users")) {
			t.Errorf("%.60q: the error says what is in the file: %v", text, err)
		}
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir(), "/dev/zero"} {
		if _, err := Open(file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Reload replaces all tokens of a changed file, or none.
func TestReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, "web "+secret+" users\n")
	tokens, err := Open(file)
	expect.NoError(t, err)
	known := func(token string) bool {
		g, _ := tokens.Find([]byte("Bearer " + token))
		return g != nil
	}
	if !known(secret) || tokens.Len() != 1 {
		t.Errorf("at first: %d tokens", tokens.Len())
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(file, []byte("web "+secret+" users\nnext nonsense"), 0o600) },
		func() error { return os.WriteFile(file, nil, 0o600) },
		func() error { return os.Remove(file) },
	} {
		expect.NoError(t, spoil())
		if tokens.Reload() == nil || !known(secret) {
			t.Errorf("spoilt: known %t", known(secret))
		}
	}
	write(t, file, "web the-next-long-token users\n")
	if err := tokens.Reload(); err != nil || known(secret) || !known("the-next-long-token") {
		t.Errorf("a new file: %v", err)
	}
}

func TestExposed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	write(t, file, "web "+secret+" users\n")
	for mode, exposed := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o640: false, 0o644: true, 0o660: true, 0o602: true} {
		expect.NoError(t, os.Chmod(file, mode))
		tokens, err := Open(file)
		expect.NoError(t, err)
		if err := tokens.Exposed(); (err != nil) != exposed || exposed && !strings.Contains(err.Error(), fmt.Sprintf("%s has mode %#o", file, mode)) {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

// Every file is either parsed, or refused with an error that names a line and quotes nothing of it; parsed tokens are
// found by Find.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"web " + secret + " users,products\n# x\r\n\nops " + hashed("x") + " * pages\n",
		"m\tsha256:" + strings.Repeat("A", 64) + "\t-\tpages",
		"web " + secret + " users\nweb2 " + hashed(secret) + " users", "a b c d e", "x sha256: *", "\xef\xbb\xbfweb " + secret + " *",
		"web\u00a0" + secret + "\u2003*", "web " + strings.Repeat("=", 20) + " a.b_c-d,,", "#", "\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		read, err := parse("FILE", doc)
		if err != nil {
			checkError(t, doc, err.Error())
			return
		}
		if n := len(read.grants); n == 0 || n > MaxTokens || n != len(read.digests) {
			t.Fatalf("%d tokens, %d digests", n, len(read.digests))
		}
		tokens := new(Tokens)
		tokens.table.Store(read)
		at := 0
		for line := range strings.Lines(string(doc)) {
			fields := strings.Fields(line)
			if len(fields) == 0 || fields[0][0] == '#' {
				continue
			}
			want := &read.grants[at]
			at++
			g, presented := tokens.Find([]byte("Bearer " + fields[1]))
			if strings.HasPrefix(fields[1], "sha256:") {
				if g != nil {
					t.Errorf("a digest lets %s in", g.Name)
				}
			} else if g != want || !presented || g.Name != fields[0] || g.Pages != (len(fields) == 4) || g.all != (fields[2] == "*") {
				t.Errorf("%q: %+v", line, g)
			}
		}
	})
}

func checkError(t *testing.T, doc []byte, text string) {
	t.Helper()
	var line int
	if _, err := fmt.Sscanf(text, "FILE:%d: ", &line); err != nil && !strings.HasPrefix(text, "FILE: ") || line > strings.Count(string(doc), "\n")+1 {
		t.Errorf("not about a line: %q", text)
	}
	for _, c := range text {
		if c < ' ' || c > '~' {
			t.Errorf("it quotes the file: %q", text)
		}
	}
}

func TestFindDoesNotAllocate(t *testing.T) {
	tokens := open(t, "web "+secret+" users\nops "+hashed("x")+" * pages\n")
	hit, miss, db := []byte("Bearer "+secret), []byte("Bearer "+secret+"x"), []byte("users")
	allowed := false
	if n := testing.AllocsPerRun(100, func() {
		g, _ := tokens.Find(hit)
		other, _ := tokens.Find(miss)
		allowed = g.Reads(db) && other == nil
	}); n != 0 || !allowed {
		t.Errorf("%v allocations, allowed %t", n, allowed)
	}
}

// BenchmarkFind measures a request's token check, by the number of tokens in the file.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10, 100, MaxTokens} {
		text := new(strings.Builder)
		for i := range n {
			fmt.Fprintf(text, "t%d %s *\n", i, hashed(fmt.Sprintf("a-long-token-with-a-number-%016d", i)))
		}
		tokens := open(b, text.String())
		header := fmt.Appendf(nil, "Bearer a-long-token-with-a-number-%016d", n/2)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g, _ := tokens.Find(header); g == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}

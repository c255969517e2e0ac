package shard

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf16"
)

// javaHashes were computed by Java 17: the polynomial over unsigned and over signed bytes, String.hashCode of the
// decoded bytes, and the same plus 31.
var javaHashes = []struct {
	key  string // in hexadecimal
	hash [4]int32
}{
	{"", [4]int32{0, 1, 0, 31}},
	{"61", [4]int32{97, 128, 97, 128}},
	{"666f6f", [4]int32{101574, 131365, 101574, 101605}},
	{"757365723a303030303030303034322e", [4]int32{1171700801, 377526850, -975782847, 1171700832}},
	{"c3bc62657220c3bc626572", [4]int32{1583398540, 694330347, 1529168896, 1529168927}},
	{"e697a5e69cac", [4]int32{286847010, 43436899, 835047, 835078}},
	{"f09f9880f09f9880", [4]int32{1223999022, 1382591791, 1705528838, 1705528869}},
	{"7f80ff", [4]int32{126270, 147869, 2219103, 2219134}},
	{"ffffffffffffffffff", [4]int32{477118847, 1098527134, -1491910275, 655573404}},
	// Invalid UTF-8 that Java decodes byte by byte: overlong forms, beyond the last code point.
	{"c080", [4]int32{6080, 2147482497, 2097056, 2097087}},
	{"c3", [4]int32{195, 2147483618, 65533, 65564}},
	{"e0808080", [4]int32{6800288, 2147326753, 2017367872, 2017367903}},
	{"f0808080", [4]int32{7276944, 319761, 2017367872, 2017367903}},
	{"f4908080", [4]int32{7411484, 454301, 2017367872, 2017367903}},
	{"f8888080", [4]int32{7522960, 565777, 2017367872, 2017367903}},
	{"61626364656667c3bc68", [4]int32{1513256011, 1863534348, 395184720, 395184751}},
	{"707974686f6e2069732066756e21c2", [4]int32{1876569806, 1366035373, -270848503, 1876635176}},
}

func TestHashIsJavas(t *testing.T) {
	for _, tt := range javaHashes {
		key, err := hex.DecodeString(tt.key)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range []Partitioner{String, Hadoop, Spark, Cascading} {
			if got := p.Hash(key); got != tt.hash[i] {
				t.Errorf("%v.Hash(%x) = %d, want %d", p, key, got, tt.hash[i])
			}
		}
	}
}

// plain are the functions of slowHash.
var plain = []Partitioner{String, Hadoop, Spark, Cascading, Hive}

// slowHash implements each function directly.
func slowHash(p Partitioner, key []byte) int32 {
	var h int32
	switch p {
	case String:
		for _, b := range key {
			h = 31*h + int32(b)
		}
		return h & 0x7fffffff
	case Hadoop, Hive:
		if p == Hadoop {
			h = 1
		}
		for _, b := range key {
			h = 31*h + int32(int8(b))
		}
		return h & 0x7fffffff
	}
	for _, u := range utf16.Encode([]rune(string(key))) { // valid UTF-8 only
		h = 31*h + int32(u)
	}
	if p == Cascading {
		return (31 + h) & 0x7fffffff
	}
	return h
}

func randomKeys(n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([][]byte, n)
	for i := range keys {
		key := make([]rune, rng.IntN(40))
		limit := []int{0x80, 0x80, 0x800, 0xd800, 0x110000}[rng.IntN(5)]
		for j := range key {
			key[j] = rune(rng.IntN(limit)) // string() turns surrogates into U+FFFD
		}
		keys[i] = []byte(string(key))
	}
	return keys
}

func TestHashAgainstPlainRule(t *testing.T) {
	for _, key := range randomKeys(50_000) {
		for _, p := range plain {
			if got, want := p.Hash(key), slowHash(p, key); got != want {
				t.Fatalf("%v.Hash(%x) = %d, want %d", p, key, got, want)
			}
		}
	}
}

func TestBytesOfAnyValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 50_000 {
		key := make([]byte, rng.IntN(40))
		for i := range key {
			key[i] = byte(rng.Uint32())
		}
		for _, p := range []Partitioner{String, Hadoop, Hive} {
			if got, want := p.Hash(key), slowHash(p, key); got != want {
				t.Fatalf("%v.Hash(%x) = %d, want %d", p, key, got, want)
			}
		}
	}
}

func TestPartition(t *testing.T) {
	tests := []struct {
		p    Partitioner
		key  string
		n    int
		want int
	}{
		{String, "foo", 1, 0},
		{String, "foo", 0, 0},
		{String, "foo", -3, 0},
		{String, "foo", 10, 4},    // 101574
		{Hadoop, "foo", 10, 5},    // 131365
		{Cascading, "foo", 10, 5}, // 101605
		{Spark, "foo", 10, 4},
		{String, "user:0000000042.", 10, 1}, // 1171700801, of a negative hashCode
		{Spark, "user:0000000042.", 10, 3},  // -975782847 mod 10 = -7
		{Spark, "user:0000000042.", 1 << 40, 1<<40 - 975782847},
		{String, "user:0000000042.", 1 << 40, 1171700801},
		{Spark, "user:0000000042.", 975782847, 0},
	}
	for _, tt := range tests {
		if got := tt.p.Partition([]byte(tt.key), tt.n); got != tt.want {
			t.Errorf("%v.Partition(%q, %d) = %d, want %d", tt.p, tt.key, tt.n, got, tt.want)
		}
	}
}

func TestPartitionStaysInRange(t *testing.T) {
	for _, key := range randomKeys(2000) {
		for _, p := range Partitioners() {
			for _, n := range []int{1, 2, 3, 7, 64, 1000, 1<<31 - 1, 1 << 31, 1<<31 + 1} {
				if got := p.Partition(key, n); got < 0 || got >= n {
					t.Fatalf("%v.Partition(%x, %d) = %d", p, key, n, got)
				}
			}
		}
	}
}

func TestNames(t *testing.T) {
	for _, p := range Partitioners() {
		got, err := ParsePartitioner(p.String())
		if err != nil || got != p {
			t.Errorf("ParsePartitioner(%q) = %v, %v", p.String(), got, err)
		}
	}
	for _, name := range []string{"", "auto", "String", "murmur"} {
		if _, err := ParsePartitioner(name); err == nil {
			t.Errorf("ParsePartitioner(%q) succeeded", name)
		}
	}
	if got := Partitioner(99).String(); got != "partitioner(99)" {
		t.Errorf("unknown partitioner prints as %q", got)
	}
}

func TestNamesAsText(t *testing.T) {
	text, err := json.Marshal(Partitioners()[:4])
	if err != nil || string(text) != `["string","hadoop","spark","cascading"]` {
		t.Errorf("%s, %v", text, err)
	}
	var got []Partitioner
	if err := json.Unmarshal(text, &got); err != nil || !slices.Equal(got, Partitioners()[:4]) {
		t.Errorf("%v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`["murmur"]`), &got); err == nil {
		t.Error("an unknown partitioner was parsed")
	}
	if _, err := json.Marshal(numPartitioners); err == nil {
		t.Error("an unknown partitioner was marshalled")
	}
}

func TestNoAllocation(t *testing.T) {
	keys := [][]byte{[]byte("user:0000000042."), []byte("über-größe-日本"), {0xff, 0xed, 0xa0}}
	d := NewDetector(7, 1, 0, PartNames)
	allocs := testing.AllocsPerRun(100, func() {
		for _, key := range keys {
			for _, p := range Partitioners() {
				p.Partition(key, 7)
			}
			d.Add(3, key)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkPartition(b *testing.B) {
	ascii, utf8 := []byte("user:0000000042."), []byte("benützer:00042.")
	for _, p := range Partitioners() {
		b.Run(p.String(), func(b *testing.B) {
			for b.Loop() {
				p.Partition(ascii, 20)
			}
		})
	}
	b.Run("spark-utf8", func(b *testing.B) {
		for b.Loop() {
			Spark.Partition(utf8, 20)
		}
	})
}

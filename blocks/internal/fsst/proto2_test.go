package fsst

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
)

func mix(n uint64) uint64 {
	n += 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}
func appendRandom(dst []byte, n uint64, digits int) []byte {
	for i := range digits {
		if i%10 == 0 {
			n = mix(n ^ 0x64696769)
		}
		dst = append(dst, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[n>>(6*(i%10))&63])
	}
	return dst
}

type field struct {
	name   string
	digits int
}

var fields = []field{
	{`{"id":"`, 16}, {`","segment":"`, 0}, {`","embedding":"`, 22}, {`","next":"`, 8}, {`"}`, 0},
}
var vocabulary = makeVocabulary()

func makeVocabulary() []string {
	words := make([]string, 1024)
	for i := range words {
		n := mix(uint64(i) ^ 0x766f63)
		var w []byte
		for range 4 + n%5 {
			n = mix(n)
			w = append(w, "etaoinshrdlucmfw"[n&15])
		}
		words[i] = string(w)
	}
	return words
}
func benchValue(i int) []byte {
	var dst []byte
	n := mix(uint64(i) ^ 0x76616c7565)
	for f := 0; len(dst) < 100; f++ {
		part := fields[f%len(fields)]
		dst = append(dst, part.name...)
		n = mix(n)
		if part.digits > 0 {
			dst = appendRandom(dst, n, part.digits)
		} else {
			dst = append(dst, vocabulary[n%1024*(n>>10%1024)>>10]...)
		}
	}
	return dst[:100]
}

var kinds = map[string]func(r *rand.Rand) []byte{}

func TestProto2(t *testing.T) {
	kinds["bench"] = func(r *rand.Rand) []byte { return benchValue(int(r.Uint64() >> 20)) }
	for _, keys := range []string{"hex", "user"} {
		for name, gen := range kinds {
			for _, whole := range []bool{false, true} {
				r := rand.New(rand.NewPCG(1, 2))
				var values, ks, recs [][]byte
				total := 0
				for i := 0; total < 1<<20; i++ {
					v := gen(r)
					k := fmt.Appendf(nil, "%016x", mix(uint64(i)))
					if keys == "user" {
						k = fmt.Appendf(nil, "user:%012d", i)
					}
					ks = append(ks, k)
					values = append(values, v)
					total += len(v)
				}
				if keys == "hex" {
					slices.SortFunc(ks, bytes.Compare)
				}
				for i := range ks {
					if whole {
						recs = append(recs, append(append([]byte{byte(len(ks[i]))}, ks[i]...), values[i]...))
					} else {
						recs = append(recs, values[i])
					}
				}
				var sample [][]byte
				for n := 0; n < 16<<10; {
					i := (len(sample) * 7919) % len(recs)
					sample = append(sample, recs[i])
					n += len(recs[i])
				}
				best := func(f func()) time.Duration {
					b := time.Hour
					for range 7 {
						begun := time.Now()
						f()
						b = min(b, time.Since(begun))
					}
					return b
				}
				var e *Encoder
				train := best(func() { e = Train(sample) })
				var coded [][]byte
				sum := 0
				var buf []byte
				enc := best(func() {
					for _, v := range recs {
						buf = e.AppendAll(buf[:0], v, []int{len(v)})
					}
				})
				for _, v := range recs {
					c := e.AppendAll(nil, v, []int{len(v)})
					coded = append(coded, c)
					sum += len(c)
				}
				dec := best(func() {
					for _, c := range coded {
						buf, _ = e.Table.Append(buf[:0], c, 1<<16)
					}
				})
				for i, c := range coded {
					buf, _ = e.Table.Append(buf[:0], c, 1<<16)
					if !bytes.Equal(buf, recs[i]) {
						t.Fatalf("%q %q", buf, values[i])
					}
				}
				var pages [][]byte
				var page, out []byte
				for i, v := range values {
					page = append(page, 16, 0, 0, byte(i*77))
					page = append(page, ks[i]...)
					page = append(page, v...)
					if len(page) > 4000 {
						pages = append(pages, bytes.Clone(page))
						page = page[:0]
					}
				}
				snappy := 0
				snap := best(func() {
					snappy = 0
					for _, p := range pages {
						out = s2.EncodeSnappy(out[:cap(out)], p)
						snappy += min(len(out), len(p))
					}
				})
				n := len(values)
				size := sum + 3*n
				if !whole {
					size += (len(ks[0]) + 1) * n
				}
				fmt.Printf("%-4s %-8s whole=%-5v %6.1f B raw, codes %6.1f; size %6.1f, snappy %6.1f: %.2f; table %d; train %v; encode %d ns, decode %d ns; snappy %d ns\n", keys, name, whole, float64(total)/float64(n), float64(sum)/float64(n),
					float64(size)/float64(n), float64(snappy)/float64(n), float64(size)/float64(snappy), len(e.AppendTo(nil)), train, int(enc)/n, int(dec)/n, int(snap)/n)
			}
		}
	}
}

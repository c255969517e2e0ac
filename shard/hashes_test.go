package shard

import (
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestHashesOfOthers compares with the classes of Spark, Kafka and Hive; testdata/hashes writes the file.
func TestHashesOfOthers(t *testing.T) {
	b, err := os.ReadFile("testdata/hashes.txt")
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string][]Partitioner{
		"bytes": {Murmur3, Kafka, Hive, HiveMurmur3},
		"long":  {Murmur3Long, HiveLong, HiveMurmur3Long},
		"int":   {Murmur3Int, HiveInt, HiveMurmur3Int},
	}
	checked := 0
	for line := range strings.Lines(string(b)) {
		words := strings.Fields(line)
		key := []byte(words[1])
		if words[0] == "bytes" {
			if key, err = hex.DecodeString(words[1][1:]); err != nil {
				t.Fatal(err)
			}
		}
		for i, p := range functions[words[0]] {
			want, err := strconv.ParseInt(words[2+i], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			equalHash(t, p, key, int32(want))
			checked++
		}
	}
	if checked != 200*4+400*3 {
		t.Errorf("%d hashes in the file", checked)
	}
}

// TestNumbers: a key is a number in one form only.
func TestNumbers(t *testing.T) {
	for key, want := range map[string][2]bool{ // of 32 bits, of 64
		"0": {true, true}, "-1": {true, true}, "10": {true, true},
		"2147483647": {true, true}, "2147483648": {false, true}, "-2147483648": {true, true}, "-2147483649": {false, true},
		"9223372036854775807": {false, true}, "9223372036854775808": {false, false}, "9999999999999999999": {false, false},
		"-9223372036854775808": {false, true}, "-9223372036854775809": {false, false}, "10000000000000000000": {false, false},
		"": {}, "-": {}, "-0": {}, "00": {}, "01": {}, "-01": {}, "+1": {}, "1 ": {}, " 1": {}, "1.0": {}, "0x1": {}, "1e3": {}, "--1": {}, "１": {},
	} {
		for i, size := range []int{32, 64} {
			if v, ok := parseNumber([]byte(key), size); ok != want[i] || ok && strconv.FormatInt(v, 10) != key {
				t.Errorf("%q of %d bits: %d, %v", key, size, v, ok)
			}
		}
	}
	for range 10_000 {
		v := int64(rand.Uint64()) >> rand.IntN(64)
		if got, ok := parseNumber(strconv.AppendInt(nil, v, 10), 64); !ok || got != v {
			t.Fatalf("%d: %d, %v", v, got, ok)
		}
	}
}

func TestNamesOfPartitioners(t *testing.T) {
	for _, p := range Partitioners() {
		if got, err := ParsePartitioner(p.String()); got != p || err != nil {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
}

//go:build integration

package gcs_test

import (
	"testing"

	"sequins/source"
	"sequins/source/gcs"
	"sequins/test/clouds"
	"sequins/test/objectstest"
	"sequins/test/sourcetest"
)

func TestConformance(t *testing.T) {
	server := clouds.StartGCS(t)
	sourcetest.Run(t, 0, func(t *testing.T) sourcetest.Place {
		return objectstest.NewPlace(t, server, func(t testing.TB, prefix string) source.Source { return open(t, at(server.Endpoint(), prefix)) })
	})
}

func TestObjects(t *testing.T) {
	objectstest.Run(t, objectstest.Store{
		Bucket: clouds.Bucket, Shared: clouds.StartGCS(t), URL: "gs://%s/",
		Start: func(t testing.TB) objectstest.Server { return clouds.StartGCS(t) },
		Open: func(o objectstest.Options) (source.Source, error) {
			return gcs.NewAt(gcs.Options{URL: "gs://" + o.Bucket + "/" + o.Prefix, Options: o.Options}, o.Endpoint, false)
		},
	})
}

// TestChecksum: equal objects have equal checksums.
func TestChecksum(t *testing.T) {
	s := clouds.StartGCS(t)
	sums := map[string]string{}
	src := open(t, at(s.Endpoint(), ""))
	for version, text := range map[string]string{"1": "same", "2": "same", "3": "else"} {
		s.Put(t, "db/"+version+"/file", []byte(text))
		c, err := src.Contents(t.Context(), "db", version)
		if err != nil || len(c.Files) != 1 {
			t.Fatal(c, err)
		}
		sums[version] = c.Files[0].Sum
	}
	if sums["1"] == "" || sums["1"] != sums["2"] || sums["1"] == sums["3"] {
		t.Errorf("checksums %q", sums)
	}
}

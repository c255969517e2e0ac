package metrics

import (
	"fmt"
	"strings"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"
)

// Statsd sends the metrics of Stripe's sequins to a DogStatsD agent, with the
// same names and tags:
//
//	sequins.db.requests           count   requests of clients for keys    db:<db>
//	sequins.s3.queue_depth        gauge   files that a load has yet to read   sequins_db:<db>
//	sequins.s3.download_duration  timing  reading one file of a load      sequins_db:<db>
//	sequins.db_creation_time      timing  from finding a version to activating it   sequins_db:<db>
//
// and an event when a version becomes active. All of them also have the tag
// sequins:<cluster>. (The names contain s3 for every source.)
//
// Sending never blocks, and data that the agent does not receive is lost. All
// methods but Close may be called on a nil *Statsd and then do nothing.
type Statsd struct{ client *statsd.Client }

// SendTo sends what m counts from now on to an agent, until Close of the result.
// The address is host:port, for UDP, or unix:///path of a socket; cluster is the
// value of a tag. It must be called before anything is counted. FollowTraffic sends the numbers of requests.
func (m *Metrics) SendTo(address, cluster string) (*Statsd, error) {
	client, err := statsd.New(address,
		statsd.WithNamespace("sequins."), statsd.WithTags([]string{"sequins:" + cluster}),
		statsd.WithoutTelemetry(),                                 // metrics about the client itself
		statsd.WithWorkersCount(1), statsd.WithBufferPoolSize(16), // there are a few lines a second
	)
	if err != nil {
		return nil, err
	}
	s := &Statsd{client}
	m.Statsd, m.Load.Statsd, m.Server.statsd = s, s, s
	return s, nil
}

// Close sends the remaining data and stops.
func (s *Statsd) Close() error { return s.client.Close() }

func dbTag(db string) []string { return []string{"sequins_db:" + tagValue(db)} }

// tagValue returns the name of a db as the value of a tag. Commas separate tags.
func tagValue(db string) string { return strings.ReplaceAll(db, ",", "_") }

// Active reports that a version has become active, and how long after it was
// found.
func (s *Statsd) Active(db, version string, after time.Duration) {
	if s == nil {
		return
	}
	e := statsd.NewEvent(fmt.Sprintf("A new version is active in %s.", db),
		fmt.Sprintf("Version %s has been set to active in db %s.", version, db))
	e.Tags = dbTag(db)
	_ = s.client.Event(e) // the only error is a missing title
	_ = s.client.Timing("db_creation_time", after, dbTag(db), 1)
}

// Files sends the number of files that a load has yet to read.
func (s *Statsd) Files(db string, left int64) {
	if s != nil {
		_ = s.client.Gauge("s3.queue_depth", float64(left), dbTag(db), 1)
	}
}

// File sends the duration of reading a file.
func (s *Statsd) File(db string, took time.Duration) {
	if s != nil {
		_ = s.client.Timing("s3.download_duration", took, dbTag(db), 1)
	}
}

package metrics

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Process reports on the process and its machine. It implements
// prometheus.Collector and is safe for concurrent use.
type Process struct {
	build   atomic.Pointer[string]
	store   atomic.Pointer[string]
	disk    atomic.Pointer[Disk] // nil: there is no store, or its disk could not be read
	good    atomic.Bool          // the last read of the configuration succeeded
	applied atomic.Int64         // when the active configuration was read, in Unix milliseconds
	expiry  atomic.Pointer[func() time.Time]
	blocks  atomic.Pointer[func() (files, maps int, held int64)]
	lacking atomic.Pointer[func() int64]
}

func newProcess() *Process {
	p := new(Process)
	p.Configured(true)
	return p
}

// SetBuild sets the version of the program.
func (p *Process) SetBuild(version string) { p.build.Store(&version) }

// SetStore sets the directory of the local store and measures its disk.
func (p *Process) SetStore(dir string) {
	p.store.Store(&dir)
	p.MeasureDisk()
}

// Disk is the size of the local store's file system, in bytes. Free is what
// sequins can still write.
type Disk struct{ Size, Free int64 }

// Disk returns the last measurement; nil if there is no store or its file system
// could not be read. The result is read-only.
func (p *Process) Disk() *Disk { return p.disk.Load() }

// FreeDisk measures the disk again, and returns its free bytes. known is false if there is no store or its file system cannot be
// read. It can block forever on a faulty disk.
func (p *Process) FreeDisk() (bytes int64, known bool) {
	p.MeasureDisk()
	if d := p.Disk(); d != nil {
		return d.Free, true
	}
	return 0, false
}

// MeasureDisk measures the disk again. It can block forever on a faulty disk.
func (p *Process) MeasureDisk() {
	dir := p.store.Load()
	var fs unix.Statfs_t
	if dir == nil || unix.Statfs(*dir, &fs) != nil {
		p.disk.Store(nil)
		return
	}
	p.disk.Store(&Disk{Size: inBytes(float64(fs.Blocks), float64(fs.Bsize)), Free: inBytes(float64(fs.Bavail), float64(fs.Bsize))})
}

// inBytes returns blocks·size, clamped: a file system may report any numbers.
func inBytes(blocks, size float64) int64 {
	return int64(max(0, min(blocks*size, 1<<62)))
}

// SetCertificate sets the function that returns the expiry of this node's
// certificate at a scrape.
func (p *Process) SetCertificate(expiry func() time.Time) { p.expiry.Store(&expiry) }

// SetBlocks sets the function that returns the resource usage of blocks at a
// scrape: open files, memory maps, and bytes on the heap.
func (p *Process) SetBlocks(usage func() (files, maps int, held int64)) { p.blocks.Store(&usage) }

// SetRefused sets the function that returns the number of connections that were refused for want of a file descriptor.
func (p *Process) SetRefused(connections func() int64) { p.lacking.Store(&connections) }

// Configured reports that the configuration has been read now, and whether it was
// valid and is active.
func (p *Process) Configured(good bool) {
	p.good.Store(good)
	if good {
		p.applied.Store(time.Now().UnixMilli())
	}
}

var (
	descBuild = prometheus.NewDesc("sequins_build_info",
		"1, with the versions of sequins and of Go.", []string{"version", "goversion"}, nil)
	descConfigGood = prometheus.NewDesc("sequins_config_last_reload_successful",
		"1 if the last read of the configuration, at the start or at SIGHUP, succeeded; else 0, and the previous one is in use.", nil, nil)
	descConfigApplied = prometheus.NewDesc("sequins_config_last_reload_success_timestamp_seconds",
		"When the configuration in use was read, in Unix time.", nil, nil)
	descExpiry = prometheus.NewDesc("sequins_certificate_expiry_timestamp_seconds",
		"When the certificate of the node expires, in Unix time.", nil, nil)
	descStoreSize = prometheus.NewDesc("sequins_store_size_bytes",
		"Size of the file system of the local store.", nil, nil)
	descStoreFree = prometheus.NewDesc("sequins_store_free_bytes",
		"Free bytes of that file system that sequins may use.", nil, nil)
	descBlockFiles = prometheus.NewDesc("sequins_block_open_files",
		"Open block files.", nil, nil)
	descBlockMaps = prometheus.NewDesc("sequins_block_maps",
		"Blocks mapped into memory.", nil, nil)
	descLacking = prometheus.NewDesc("sequins_connections_without_descriptor_total",
		"Connections refused because the process had no file descriptor left.", nil, nil)
	descBlockHeld = prometheus.NewDesc("sequins_block_held_bytes",
		"Bytes of pages of small blocks kept on the heap.", nil, nil)
)

// Describe implements prometheus.Collector.
func (p *Process) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descBuild, descConfigGood, descConfigApplied, descExpiry, descStoreSize, descStoreFree,
		descBlockFiles, descBlockMaps, descBlockHeld, descLacking} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It omits the size of a file system
// that could not be read.
func (p *Process) Collect(ch chan<- prometheus.Metric) {
	if build := p.build.Load(); build != nil {
		emit(ch, descBuild, 1, *build, runtime.Version())
	}
	good := 0.0
	if p.good.Load() {
		good = 1
	}
	emit(ch, descConfigGood, good)
	emit(ch, descConfigApplied, float64(p.applied.Load())/1e3)
	if expiry := p.expiry.Load(); expiry != nil {
		emit(ch, descExpiry, unixTime((*expiry)()))
	}
	if disk := p.Disk(); disk != nil {
		emit(ch, descStoreSize, float64(disk.Size))
		emit(ch, descStoreFree, float64(disk.Free))
	}
	if usage := p.blocks.Load(); usage != nil {
		files, maps, held := (*usage)()
		emit(ch, descBlockFiles, float64(files))
		emit(ch, descBlockMaps, float64(maps))
		emit(ch, descBlockHeld, float64(held))
	}
	if refused := p.lacking.Load(); refused != nil {
		count(ch, descLacking, uint64((*refused)()))
	}
}

package main

import (
	"bytes"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// pebbleDB is Pebble with pebble.Sync on every commit and the sizes that CockroachDB uses: memtables of 64 MiB, a
// cache of 128 MiB, bloom filters.
type pebbleDB struct {
	db    *pebble.DB
	cache *pebble.Cache
	told  func(kind string, took time.Duration)
}

// Watch implements watched.
func (p *pebbleDB) Watch(told func(kind string, took time.Duration)) { p.told = told }

// Levels implements watched.
func (p *pebbleDB) Levels() map[string]int64 {
	m := p.db.Metrics()
	return map[string]int64{"debt": int64(m.Compact.EstimatedDebt)}
}

// listener reports the engine's background work.
func (p *pebbleDB) listener() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd:        func(i pebble.FlushInfo) { p.told("flushed", i.TotalDuration) },
		CompactionEnd:   func(i pebble.CompactionInfo) { p.told("compacted", i.TotalDuration) },
		WriteStallBegin: func(pebble.WriteStallBeginInfo) { p.told("writers slowed", 0) },
		WALCreated:      func(pebble.WALCreateInfo) { p.told("log rolled", 0) },
	}
}

func (p *pebbleDB) Name() string       { return "Pebble" }
func (p *pebbleDB) MultiProcess() bool { return false }

func (p *pebbleDB) Open(dir string) error {
	p.cache = pebble.NewCache(128 << 20)
	opts := &pebble.Options{
		Cache:                       p.cache,
		MemTableSize:                64 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       2,
		L0StopWritesThreshold:       1000,
		Logger:                      silent{},
		FormatMajorVersion:          pebble.FormatNewest,
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	if p.told != nil {
		opts.EventListener = p.listener()
	}
	db, err := pebble.Open(dir, opts)
	p.db = db
	return err
}

func (p *pebbleDB) Put(d Doc) error { return p.db.Set([]byte(d.ID), d.JSON, pebble.Sync) }

func (p *pebbleDB) PutBatch(docs []Doc) error {
	b := p.db.NewBatchWithSize(len(docs) * (docSize + 64))
	defer b.Close()
	for _, d := range docs {
		if err := b.Set([]byte(d.ID), d.JSON, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

func (p *pebbleDB) Get(id string) ([]byte, error) {
	val, closer, err := p.db.Get([]byte(id))
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return bytes.Clone(val), nil
}

func (p *pebbleDB) Close() error {
	defer p.cache.Unref()
	return p.db.Close()
}

// silent discards the engine's own log, so that it does not disturb the table.
type silent struct{}

func (silent) Infof(string, ...any)      {}
func (silent) Errorf(string, ...any)     {}
func (silent) Warningf(string, ...any)   {}
func (silent) Debugf(string, ...any)     {}
func (silent) Fatalf(f string, a ...any) { panic(f) }

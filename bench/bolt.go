package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	bbolt "go.etcd.io/bbolt"
)

// bolt is bbolt with the settings that etcd uses: the freelist is a map, and is not synced with each commit. A put
// that is alone is an Update. When others wait, it joins their Batch, which is bbolt's group commit, with a delay
// of 1 ms: the default of 10 ms is meant for hundreds of callers, and 1 ms serves 64 better.
type bolt struct {
	db     *bbolt.DB
	flying atomic.Int32
}

var boltBucket = []byte("m")

func (b *bolt) Name() string       { return "bbolt" }
func (b *bolt) MultiProcess() bool { return false }

func (b *bolt) Open(dir string) error {
	db, err := bbolt.Open(filepath.Join(dir, "bench.db"), 0o600, &bbolt.Options{
		FreelistType: bbolt.FreelistMapType, NoFreelistSync: true, Timeout: time.Second,
	})
	if err != nil {
		return err
	}
	b.db = db
	db.MaxBatchSize, db.MaxBatchDelay = 64, time.Millisecond
	return db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(boltBucket)
		return err
	})
}

func (b *bolt) Put(d Doc) error {
	commit := b.db.Batch
	if b.flying.Add(1) == 1 {
		commit = b.db.Update
	}
	defer b.flying.Add(-1)
	return commit(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Put([]byte(d.ID), d.JSON) })
}

func (b *bolt) PutBatch(docs []Doc) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		for _, d := range docs {
			if err := tx.Bucket(boltBucket).Put([]byte(d.ID), d.JSON); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *bolt) Get(id string) (doc []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		// The bytes are the map's, and only good inside.
		doc = bytes.Clone(tx.Bucket(boltBucket).Get([]byte(id)))
		if doc == nil {
			return fmt.Errorf("%s is not there", id)
		}
		return nil
	})
	return doc, err
}

func (b *bolt) Close() error { return b.db.Close() }

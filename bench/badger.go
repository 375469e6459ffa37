package main

import badger "github.com/dgraph-io/badger/v4"

// badgerDB is Badger with SyncWrites, without which it loses acknowledged
// writes; the rest are its defaults (64 MiB memtables, values of 1 KB in the tables), except for
// conflict detection, which a blind put does not need. Its write channel gathers commits, but syncs
// the log for each of them (db.go, writeToLSM): many goroutines gain it little.
type badgerDB struct{ db *badger.DB }

func (b *badgerDB) Name() string       { return "Badger" }
func (b *badgerDB) MultiProcess() bool { return false }

func (b *badgerDB) Open(dir string) error {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(true).WithDetectConflicts(false).WithLogger(silent{}))
	b.db = db
	return err
}

func (b *badgerDB) Put(d Doc) error {
	return b.db.Update(func(tx *badger.Txn) error { return tx.Set([]byte(d.ID), d.JSON) })
}

func (b *badgerDB) PutBatch(docs []Doc) error {
	return b.db.Update(func(tx *badger.Txn) error {
		for _, d := range docs {
			if err := tx.Set([]byte(d.ID), d.JSON); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *badgerDB) Get(id string) (doc []byte, err error) {
	err = b.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get([]byte(id))
		if err == nil {
			doc, err = item.ValueCopy(nil)
		}
		return err
	})
	return doc, err
}

func (b *badgerDB) Close() error { return b.db.Close() }

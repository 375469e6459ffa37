package main

import badger "github.com/dgraph-io/badger/v4"

// badgerDB is Badger with SyncWrites; without SyncWrites it loses acknowledged writes. All other settings are
// Badger's defaults (memtables of 64 MiB, values of 1 KB in the tables), except that conflict detection is off,
// because a put without conditions does not need it. Badger's write channel collects commits, but syncs the log for
// each of them (db.go, writeToLSM), so many goroutines gain little.
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

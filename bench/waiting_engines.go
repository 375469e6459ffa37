package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/varve-db/varve"
)

// waitVarve is Varve with its defaults.
type waitVarve struct{ varveStore }

func (v *waitVarve) Delete(id string) error { return v.st.Delete(context.Background(), id) }

func (v *waitVarve) Count(session string) (int, error) {
	n, err := v.st.Count(context.Background(), varve.InSession(session))
	return int(n), err
}

func (v *waitVarve) List(session string) (n int, err error) {
	for _, err := range v.st.Memories(context.Background(), varve.InSession(session)) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (v *waitVarve) Search(text string) (int, error) {
	hits, err := v.st.Search(context.Background(), varve.Query{Text: text, Limit: 10})
	return len(hits), err
}

func (v *waitVarve) Verify() error {
	for f, err := range v.st.Admin().Verify(context.Background(), varve.VerifyOptions{}) {
		if err != nil {
			return err
		}
		if f.Severity != varve.SeverityInfo {
			return fmt.Errorf("verify found: %+v", f)
		}
	}
	return nil
}

func (v *waitVarve) Export(file string) (int, error) {
	return exportTo(file, func(write func([]byte) error) error {
		for m, err := range v.st.Memories(context.Background()) {
			if err != nil {
				return err
			}
			b, err := m.MarshalJSON()
			if err != nil {
				return err
			}
			if err := write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func (v *waitVarve) Backup(path string) error {
	_, err := v.st.Backup(context.Background(), path, varve.BackupOptions{})
	return err
}

// CloseWithin closes the store within a time limit. Changes that were not written to files in that time are in the
// log.
func (v *waitVarve) CloseWithin(limit time.Duration) { _ = v.st.CloseWithin(limit) }

// exportTo writes documents to a file, one per line, and returns their number.
func exportTo(file string, all func(write func([]byte) error) error) (n int, err error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	err = all(func(b []byte) error {
		n++
		_, err := w.Write(b)
		return errors.Join(err, w.WriteByte('\n'))
	})
	return n, errors.Join(err, w.Flush())
}

// waitBolt is bbolt. It has no index of sessions or words.
type waitBolt struct{ bolt }

// OpenUncached opens the database as always: bbolt has no cache of its own.
func (b *waitBolt) OpenUncached(dir string) error { return b.Open(dir) }

func (b *waitBolt) Update(id string) error {
	return b.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(boltBucket)
		doc, err := counted(bucket.Get([]byte(id)))
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		return bucket.Put([]byte(id), doc)
	})
}

func (b *waitBolt) Delete(id string) error {
	return b.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(boltBucket).Delete([]byte(id)) })
}

func (b *waitBolt) Verify() (err error) {
	return b.db.View(func(tx *bbolt.Tx) error {
		for e := range tx.Check() {
			err = errors.Join(err, e)
		}
		return err
	})
}

func (b *waitBolt) Export(file string) (int, error) {
	return exportTo(file, func(write func([]byte) error) error {
		return b.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(boltBucket).ForEach(func(_, doc []byte) error { return write(doc) })
		})
	})
}

func (b *waitBolt) Backup(path string) error {
	return b.db.View(func(tx *bbolt.Tx) (err error) {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		_, err = tx.WriteTo(io.Writer(f))
		return errors.Join(err, f.Sync())
	})
}

// waitSQLite is SQLite with the driver written in Go, an index of the sessions, and an FTS5 index of the contents.
type waitSQLite struct {
	db   *sql.DB
	byID *sql.Stmt
}

func (s *waitSQLite) Name() string { return "SQLite (modernc, Go)" }

func (s *waitSQLite) Open(dir string) error { return s.open(dir, "") }

// OpenUncached opens the database with the smallest cache of pages that SQLite has.
func (s *waitSQLite) OpenUncached(dir string) error { return s.open(dir, "&_pragma=cache_size(1)") }

func (s *waitSQLite) open(dir, options string) (err error) {
	s.db, err = sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "bench.db"))+
		"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"+options)
	if err != nil {
		return err
	}
	s.db.SetMaxOpenConns(1)
	_, err = s.db.Exec(`
CREATE TABLE IF NOT EXISTS m (n INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, session TEXT, content TEXT, doc BLOB);
CREATE INDEX IF NOT EXISTS by_session ON m (session);
CREATE VIRTUAL TABLE IF NOT EXISTS w USING fts5(content, content=m, content_rowid=n);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON m BEGIN
	INSERT INTO w(rowid, content) VALUES (new.n, new.content);
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON m BEGIN
	INSERT INTO w(w, rowid, content) VALUES ('delete', old.n, old.content);
END;`)
	if err != nil {
		return err
	}
	s.byID, err = s.db.Prepare(selectDoc)
	return err
}

func (s *waitSQLite) Get(id string) (doc []byte, err error) {
	err = s.byID.QueryRow(id).Scan(&doc)
	return doc, err
}

func (s *waitSQLite) Close() (err error) {
	if s.byID != nil {
		err = s.byID.Close()
	}
	return errors.Join(err, s.db.Close())
}

func (s *waitSQLite) PutBatch(docs []Doc) error {
	return s.within(func(tx *sql.Tx) error {
		insert, err := tx.Prepare(`INSERT INTO m (id, session, content, doc) VALUES (?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, d := range docs {
			if _, err := insert.Exec(d.ID, d.session(), d.Content, d.JSON); err != nil {
				return err
			}
		}
		return nil
	})
}

// within runs f in a transaction.
func (s *waitSQLite) within(f func(tx *sql.Tx) error) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *waitSQLite) Update(id string) error {
	return s.within(func(tx *sql.Tx) error {
		var doc []byte
		if err := tx.QueryRow(`SELECT doc FROM m WHERE id = ?`, id).Scan(&doc); err != nil {
			return err
		}
		doc, err := counted(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		_, err = tx.Exec(`UPDATE m SET doc = ? WHERE id = ?`, doc, id)
		return err
	})
}

func (s *waitSQLite) Delete(id string) error {
	_, err := s.db.Exec(`DELETE FROM m WHERE id = ?`, id)
	return err
}

func (s *waitSQLite) Count(session string) (n int, err error) {
	err = s.db.QueryRow(`SELECT count(*) FROM m WHERE session = ?`, session).Scan(&n)
	return n, err
}

func (s *waitSQLite) List(session string) (int, error) {
	return s.rows(`SELECT doc FROM m WHERE session = ? ORDER BY id`, func([]byte) error { return nil }, session)
}

func (s *waitSQLite) Search(text string) (int, error) {
	words := "\"" + strings.Join(strings.Fields(text), "\" OR \"") + "\""
	return s.rows(`SELECT m.doc FROM w JOIN m ON m.n = w.rowid WHERE w MATCH ? ORDER BY bm25(w) LIMIT 10`,
		func([]byte) error { return nil }, words)
}

// rows calls each with the documents that a query selects, and returns their number.
func (s *waitSQLite) rows(query string, each func(doc []byte) error, args ...any) (n int, err error) {
	rows, err := s.db.Query(query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var doc []byte
		if err := rows.Scan(&doc); err != nil {
			return n, err
		}
		if err := each(doc); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

func (s *waitSQLite) Verify() error {
	var said string
	if err := s.db.QueryRow(`PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		return errors.Join(err, fmt.Errorf("integrity_check: %s", said))
	}
	return nil
}

func (s *waitSQLite) Export(file string) (int, error) {
	return exportTo(file, func(write func([]byte) error) error {
		_, err := s.rows(`SELECT doc FROM m`, write)
		return err
	})
}

func (s *waitSQLite) Backup(path string) error {
	_, err := s.db.Exec(`VACUUM INTO ?`, path)
	return err
}

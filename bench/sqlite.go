package main

import (
	"database/sql"
	"path/filepath"
	"runtime"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
	_ "modernc.org/sqlite"          // the driver "sqlite"
)

// sqlite is SQLite by either driver: WAL, synchronous=FULL (in WAL mode every
// commit is then synced; NORMAL loses commits with the power), prepared
// statements, and one writing connection, because goroutines that queue in Go
// are served faster than connections that poll for the lock. Between
// processes there is only busy_timeout. Checkpoints as by default.
type sqlite struct {
	driver, name string
	w, r         *sql.DB
	insert, byID *sql.Stmt
}

func (s *sqlite) Name() string       { return s.name }
func (s *sqlite) MultiProcess() bool { return true }

func (s *sqlite) Open(dir string) error {
	file := "file:" + filepath.ToSlash(filepath.Join(dir, "bench.db"))
	dsn := file + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
	if s.driver == "sqlite3" {
		dsn = file + "?_busy_timeout=30000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"
	}
	var err error
	if s.w, err = sql.Open(s.driver, dsn); err != nil {
		return err
	}
	s.w.SetMaxOpenConns(1)
	if s.r, err = sql.Open(s.driver, dsn); err != nil {
		return err
	}
	s.r.SetMaxOpenConns(runtime.NumCPU())
	s.r.SetMaxIdleConns(runtime.NumCPU())
	if _, err = s.w.Exec(`CREATE TABLE IF NOT EXISTS m (id TEXT PRIMARY KEY, doc BLOB NOT NULL)`); err != nil {
		return err
	}
	if s.insert, err = s.w.Prepare(`INSERT INTO m VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`); err != nil {
		return err
	}
	s.byID, err = s.r.Prepare(`SELECT doc FROM m WHERE id = ?`)
	return err
}

func (s *sqlite) Put(d Doc) error {
	_, err := s.insert.Exec(d.ID, d.JSON)
	return err
}

func (s *sqlite) PutBatch(docs []Doc) error {
	tx, err := s.w.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	stmt := tx.Stmt(s.insert)
	for _, d := range docs {
		if _, err := stmt.Exec(d.ID, d.JSON); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqlite) Get(id string) (doc []byte, err error) {
	err = s.byID.QueryRow(id).Scan(&doc)
	return doc, err
}

func (s *sqlite) Close() error {
	s.insert.Close()
	s.byID.Close()
	s.r.Close()
	return s.w.Close()
}

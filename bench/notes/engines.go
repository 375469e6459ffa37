package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/varve-db/varve"
)

// engine stores texts at paths. A write must be durable when it returns.
type engine interface {
	name() string
	open(dir string) error
	close() error
	write(path string, text []byte) error
	edit(path, from, to string) error
	read(path string) ([]byte, error)
	fill(paths []string, text func(i int) []byte) error // its duration is not measured
	list(folder string) (int, error)
	grep(re *regexp.Regexp) (int, error)
}

// searcher is an engine that finds the best ten notes that have any of some words.
type searcher interface {
	index() (ok bool, err error) // called once, after fill
	search(words []string) (int, error)
}

func engines() []engine { return []engine{&notes{}, &files{}, &sqlite{}} }

var ctx = context.Background()

// notes is Varve, with its notes.
type notes struct{ st *varve.Store }

func (n *notes) name() string { return "Varve" }
func (n *notes) close() error { return n.st.Close() }

func (n *notes) open(dir string) (err error) {
	n.st, err = varve.Open(ctx, dir, nil)
	return err
}

func (n *notes) write(path string, text []byte) error {
	_, err := n.st.Notes().Write(ctx, path, text)
	return err
}

func (n *notes) edit(path, from, to string) error {
	_, err := n.st.Notes().Edit(ctx, path, from, to)
	return err
}

func (n *notes) read(path string) ([]byte, error) {
	note, err := n.st.Notes().Read(ctx, path)
	return note.Content, err
}

func (n *notes) fill(paths []string, text func(i int) []byte) error {
	return each(64, len(paths), func(i int) error { return n.write(paths[i], text(i)) })
}

func (n *notes) list(folder string) (count int, err error) {
	for _, err := range n.st.Notes().List(ctx, folder, 1) {
		if err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

func (n *notes) grep(re *regexp.Regexp) (count int, err error) {
	for _, err := range n.st.Notes().Grep(ctx, "", re) {
		if err != nil {
			return count, err
		}
		count++
	}
	return count, nil
}

func (n *notes) index() (bool, error) {
	if err := n.st.Flush(ctx); err != nil {
		return false, err
	}
	found, err := n.search([]string{marker})
	return found > 0, err
}

func (n *notes) search(words []string) (int, error) {
	kinds := []varve.Kind{varve.KindNote}
	hits, err := n.st.Search(ctx, varve.Query{Text: strings.Join(words, " "), Kinds: kinds, Limit: 10})
	return len(hits), err
}

// files stores texts as plain files.
type files struct{ dir string }

func (f *files) name() string { return "files" }
func (f *files) close() error { return nil }

func (f *files) open(dir string) error {
	f.dir = dir
	return os.MkdirAll(dir, 0o700)
}

func (f *files) path(path string) string { return filepath.Join(f.dir, filepath.FromSlash(path)) }

func (f *files) write(path string, text []byte) error { return f.put(path, text, true) }

func (f *files) put(path string, text []byte, durable bool) error {
	name := f.path(path)
	w, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // os.WriteFile, which has no sync
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			w, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		}
	}
	if err != nil {
		return err
	}
	if _, err = w.Write(text); err == nil && durable {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

func (f *files) edit(path, from, to string) error {
	text, err := f.read(path)
	if err != nil {
		return err
	}
	if text, err = replaced(text, from, to); err != nil {
		return err
	}
	return f.write(path, text)
}

func (f *files) read(path string) ([]byte, error) { return os.ReadFile(f.path(path)) }

func (f *files) fill(paths []string, text func(i int) []byte) error {
	return each(runtime.NumCPU(), len(paths), func(i int) error { return f.put(paths[i], text(i), false) })
}

func (f *files) list(folder string) (count int, err error) {
	list, err := os.ReadDir(f.path(folder))
	for _, e := range list {
		if _, err := e.Info(); err != nil {
			return count, err
		}
		count++
	}
	return count, err
}

func (f *files) grep(re *regexp.Regexp) (count int, err error) {
	err = filepath.WalkDir(f.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		count += matches(text, re)
		return err
	})
	return count, err
}

// sqlite is a table of paths and texts in SQLite.
type sqlite struct {
	db                     *sql.DB
	put, get, under, whole *sql.Stmt
}

func (s *sqlite) name() string { return "SQLite" }
func (s *sqlite) close() error { return s.db.Close() }

func (s *sqlite) open(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	s.db, err = sql.Open("sqlite3", "file:"+filepath.ToSlash(filepath.Join(dir, "notes.db"))+
		"?_busy_timeout=30000&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		return err
	}
	// Goroutines that queue in Go are served faster than connections that poll for the lock.
	s.db.SetMaxOpenConns(1)
	if _, err = s.db.Exec(`CREATE TABLE IF NOT EXISTS n (path TEXT PRIMARY KEY, text BLOB NOT NULL,
		changed INTEGER NOT NULL DEFAULT (unixepoch()))`); err != nil {
		return err
	}
	for stmt, text := range map[**sql.Stmt]string{
		&s.put:   `INSERT INTO n (path, text) VALUES (?, ?) ON CONFLICT (path) DO UPDATE SET text = excluded.text`,
		&s.get:   `SELECT text FROM n WHERE path = ?`,
		&s.under: `SELECT path, length(text), changed FROM n WHERE path > ? || '/' AND path < ? || '0' ORDER BY path`,
		&s.whole: `SELECT text FROM n ORDER BY path`,
	} {
		if *stmt, err = s.db.Prepare(text); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlite) write(path string, text []byte) error {
	_, err := s.put.Exec(path, text)
	return err
}

func (s *sqlite) edit(path, from, to string) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var text []byte
	if err := tx.Stmt(s.get).QueryRow(path).Scan(&text); err != nil {
		return err
	}
	if text, err = replaced(text, from, to); err != nil {
		return err
	}
	if _, err := tx.Stmt(s.put).Exec(path, text); err != nil {
		return err
	}
	return tx.Commit()
}

func (s *sqlite) read(path string) (text []byte, err error) {
	return text, s.get.QueryRow(path).Scan(&text)
}

func (s *sqlite) fill(paths []string, text func(i int) []byte) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	put := tx.Stmt(s.put)
	for i, path := range paths {
		if _, err := put.Exec(path, text(i)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqlite) list(folder string) (count int, err error) {
	rows, err := s.under.Query(folder, folder)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var path string
		var size, changed int64
		if err := rows.Scan(&path, &size, &changed); err != nil {
			return count, err
		}
		count++
	}
	return count, rows.Err()
}

func (s *sqlite) grep(re *regexp.Regexp) (count int, err error) {
	rows, err := s.whole.Query()
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text sql.RawBytes
		if err := rows.Scan(&text); err != nil {
			return count, err
		}
		count += matches(text, re)
	}
	return count, rows.Err()
}

func (s *sqlite) index() (bool, error) {
	_, err := s.db.Exec(`CREATE VIRTUAL TABLE f USING fts5(text, content = 'n', tokenize = 'porter unicode61')`)
	if err != nil && strings.Contains(err.Error(), "no such module") {
		return false, nil
	}
	if err == nil {
		_, err = s.db.Exec(`INSERT INTO f (f) VALUES ('rebuild')`)
	}
	return err == nil, err
}

func (s *sqlite) search(words []string) (count int, err error) {
	rows, err := s.db.Query(`SELECT n.path FROM f JOIN n ON n.rowid = f.rowid WHERE f MATCH ? ORDER BY f.rank LIMIT 10`,
		`"`+strings.Join(words, `" OR "`)+`"`)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			return count, err
		}
		count++
	}
	return count, rows.Err()
}

// replaced returns a text in which the one occurrence of from is replaced by to.
func replaced(text []byte, from, to string) ([]byte, error) {
	if n := bytes.Count(text, []byte(from)); n != 1 {
		return nil, fmt.Errorf("%q occurs %d times", from, n)
	}
	return bytes.Replace(text, []byte(from), []byte(to), 1), nil
}

// matches counts the lines of a text that match.
func matches(text []byte, re *regexp.Regexp) (n int) {
	for line := range bytes.Lines(text) {
		if re.Match(bytes.TrimSuffix(line, []byte("\n"))) {
			n++
		}
	}
	return n
}

// each calls f with the numbers 0 to n-1, from several goroutines, and returns the first error.
func each(goroutines, n int, f func(i int) error) error {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var first error
	next := 0
	for range goroutines {
		wait.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				failed := first != nil
				mu.Unlock()
				if i >= n || failed {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					first = errors.Join(first, err)
					mu.Unlock()
				}
			}
		})
	}
	wait.Wait()
	return first
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/varve-db/varve"
)

// prefix returns the part of an id's hash from which chromem makes a file name.
func prefix(id string) uint32 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint32(sum[:])
}

func chromemFile(dir, id string) string {
	name := func(s string) string { return hex.EncodeToString(binary.BigEndian.AppendUint32(nil, prefix(s))) }
	return filepath.Join(dir, name("documents"), name(id)+".gob")
}

func varveFile(dir, id string) string { return filepath.Join(dir, "memories", id+".json") }

// meeting returns the first two ids whose hashes have the same prefix.
func meeting() (a, b string) {
	seen := map[uint32]int{}
	for i := 0; ; i++ {
		id := fmt.Sprint("doc-", i)
		if j, ok := seen[prefix(id)]; ok {
			return fmt.Sprint("doc-", j), id
		}
		seen[prefix(id)] = i
	}
}

func losses(dir string, seed uint64, d int) error {
	if err := meet(filepath.Join(dir, "meet"), seed, d); err != nil {
		return err
	}
	docs := documents(seed, 1000, d)
	for _, part := range []struct {
		name string
		of   int64 // what is left of the file is its size divided by this; 0: nothing
	}{{"half", 2}, {"nothing", 0}} {
		fmt.Printf("\n%d documents; only %s of the file of one of them is left\n\n"+
			"| | opens | whole documents | the one |\n|---|---|---:|---|\n",
			len(docs), part.name)
		cut := func(file string) error {
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			if part.of == 0 {
				return os.Truncate(file, 0)
			}
			return os.Truncate(file, info.Size()/part.of)
		}
		if err := tornChromem(filepath.Join(dir, "chromem-"+part.name), docs, cut); err != nil {
			return fmt.Errorf("chromem: %w", err)
		}
		if err := tornVarve(filepath.Join(dir, "varve-"+part.name), docs, cut); err != nil {
			return fmt.Errorf("varve: %w", err)
		}
	}
	return nil
}

// filled creates a store in a folder, fills it with documents and closes it.
func filled(e engine, dir string, docs []document) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := e.open(dir); err != nil {
		return err
	}
	if err := e.add(docs); err != nil {
		return err
	}
	if err := e.settle(); err != nil {
		return err
	}
	return e.close()
}

// meet adds two documents whose files have the same name in chromem, and prints what is lost.
func meet(dir string, seed uint64, d int) error {
	a, b := meeting()
	fmt.Printf("\n%s and %s: the SHA-256 of both begins with %08x\n\n| | documents added | after opening again | lost "+
		"|\n|---|---:|---:|---|\n", a, b, prefix(a))
	docs := documents(seed, 2, d)
	docs[0].id, docs[1].id = a, b
	for _, e := range []engine{&chromemStore{workers: 1}, &varveStore{workers: 1}} {
		name, _, _ := strings.Cut(e.name(), ",")
		at := filepath.Join(dir, name)
		if err := filled(e, at, docs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := e.open(at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n, err := e.count()
		if err != nil {
			return err
		}
		lost := "none"
		for _, doc := range docs {
			if err := e.get(doc.id); err != nil {
				lost = err.Error()
			}
		}
		fmt.Printf("| %s | %d | %d | %s |\n", name, len(docs), n, lost)
		if err := e.close(); err != nil {
			return err
		}
	}
	return nil
}

func tornChromem(dir string, docs []document, cut func(string) error) error {
	s, one := &chromemStore{workers: 1}, docs[len(docs)/2].id
	if err := filled(s, dir, docs); err != nil {
		return err
	}
	if err := cut(chromemFile(dir, one)); err != nil {
		return err
	}
	row := func(name string) error {
		if err := s.open(dir); err != nil {
			fmt.Printf("| %s | no: `%s` | 0 | |\n", name, strings.ReplaceAll(err.Error(), dir, "DIR"))
			return nil
		}
		n, _ := s.count()
		has := "there"
		if err := s.get(one); err != nil {
			has = err.Error()
		}
		fmt.Printf("| %s | yes | %d | %s |\n", name, n, has)
		return s.close()
	}
	if err := row("chromem-go"); err != nil {
		return err
	}
	if err := os.Remove(chromemFile(dir, one)); err != nil {
		return err
	}
	return row("chromem-go, the file removed by hand")
}

// tornVarve damages the file of one document, with cut, in four stores. Two of them keep only the document files,
// as in a clone by git; and one of each two is repaired before its documents are read.
func tornVarve(dir string, docs []document, cut func(string) error) error {
	one := docs[len(docs)/2].id
	for _, v := range []struct {
		name          string
		files, repair bool
	}{{"Varve", false, false}, {"Varve, repaired", false, true}, {"Varve, the files alone", true, false},
		{"Varve, the files alone, repaired", true, true}} {
		at := filepath.Join(dir, v.name)
		if err := filled(&varveStore{}, at, docs); err != nil {
			return err
		}
		if err := cut(varveFile(at, one)); err != nil {
			return err
		}
		if v.files {
			if err := onlyFiles(at); err != nil {
				return err
			}
		}
		if err := tornRow(at, v.name, v.repair, docs); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}

// onlyFiles removes the files that .gitignore excludes.
func onlyFiles(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if e.Name() == "memories" || e.Name() == "config.json" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func tornRow(dir, name string, repair bool, docs []document) error {
	ctx := context.Background()
	var said []string
	if repair {
		plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
		if err != nil {
			return err
		}
		report, err := plan.Apply(ctx)
		if err != nil {
			return err
		}
		for _, d := range report.Done {
			said = append(said, fmt.Sprintf("repair: `%v`", d.Action))
		}
	}
	s := &varveStore{}
	if err := s.open(dir); err != nil {
		fmt.Printf("| %s | no: `%v` | 0 | |\n", name, err)
		return nil
	}
	found := false
	for f, err := range s.st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil {
			return err
		}
		if f.Severity > varve.SeverityInfo {
			found, said = true, append(said, fmt.Sprintf("verify: `%v`", f))
		}
	}
	if !found {
		said = append(said, "verify finds nothing")
	}
	good := 0
	for i := range docs {
		m, err := s.st.Get(ctx, docs[i].id)
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf("get: `%v`", err))
		case m.Content == docs[i].content && len(m.Embedding) == len(docs[i].vector):
			good++
		default:
			said = append(said, fmt.Sprintf("get: %d bytes of content, %d dimensions", len(m.Content), len(m.Embedding)))
		}
	}
	fmt.Printf("| %s | yes | %d | %s |\n", name, good, strings.Join(said, "; "))
	return s.close()
}

package adopted

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/varve-db/varve"
)

// adopting watches a store until it is killed.
func adopting(ctx context.Context, _, dir string) error {
	if _, err := varve.Open(ctx, dir, &varve.Options{WatchFiles: true}); err != nil {
		return err
	}
	select {}
}

// saved is what a program did to a file, between two moments.
type saved struct {
	Path       string
	Hash       string // of the content that the file has from End on; "" for none
	Begin, End int64  // nanoseconds
	How        string
}

// program writes files in a folder as editors, scripts and file managers do.
type program struct {
	dir, name string
	rand      *rand.Rand
	n         int
	own       map[string][]byte // its own files, as it wrote them last
}

// saving runs a program for a while: name, seed and seconds. Each line of its output is a saved.
func saving(ctx context.Context, arg, dir string) error {
	fields := strings.Split(arg, ",")
	seed, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return err
	}
	seconds, err := strconv.Atoi(fields[2])
	if err != nil {
		return err
	}
	p := &program{dir: dir, name: fields[0], rand: rand.New(rand.NewPCG(seed, 1)), own: map[string][]byte{}}
	out := json.NewEncoder(os.Stdout)
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		list, err := p.step()
		if err != nil {
			return err
		}
		for _, s := range list {
			if err := out.Encode(s); err != nil {
				return err
			}
		}
		pause := 10 + p.rand.IntN(250)
		if p.rand.IntN(12) == 0 {
			pause = 1200
		}
		time.Sleep(time.Duration(pause) * time.Millisecond)
	}
	return nil
}

func (p *program) file(path string) string { return filepath.Join(p.dir, filepath.FromSlash(path)) }

// text makes a content that no other save has.
func (p *program) text() []byte {
	p.n++
	s := fmt.Sprintf("# %s %d\n", p.name, p.n)
	size := 0
	switch p.rand.IntN(20) {
	case 0:
		size = 1 << 20
	case 1, 2, 3:
		size = 40_000
	}
	return []byte(s + strings.Repeat(fmt.Sprintf("line of save %d\n", p.n), size/16))
}

func hashOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// path is one of its own files, or one that both programs write.
func (p *program) path() (path string, own bool) {
	if p.rand.IntN(4) == 0 {
		return fmt.Sprintf("both/%d.md", p.rand.IntN(3)), false
	}
	return fmt.Sprintf("%s/%d/note %d.md", p.name, p.rand.IntN(2), p.rand.IntN(4)), true
}

// step is one thing that a program does.
func (p *program) step() (list []saved, err error) {
	path, own := p.path()
	name, data := p.file(path), p.text()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	s := saved{Path: path, Hash: hashOf(data), Begin: time.Now().UnixNano()}
	switch k := p.rand.IntN(20); {
	case k < 8:
		s.How = "in place"
		err = os.WriteFile(name, data, 0o600)
	case k < 12:
		s.How = "rename"
		temp := filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s-%d.tmp", p.name, p.n))
		if err = os.WriteFile(temp, data, 0o600); err == nil {
			err = os.Rename(temp, name)
		}
	case k < 15 && own: // as vim does with backupcopy=no
		s.How = "backup"
		probe := filepath.Join(filepath.Dir(name), "4913")
		err = os.WriteFile(probe, nil, 0o600)
		err = errors.Join(err, os.Remove(probe))
		if rerr := os.Rename(name, name+"~"); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		err = errors.Join(err, os.WriteFile(name, data, 0o600))
		if rerr := os.Remove(name + "~"); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	case k < 16 && own && p.own[path] != nil:
		s.How = "append"
		data = append(append([]byte{}, p.own[path]...), data...)
		s.Hash = hashOf(data)
		var f *os.File
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600); err == nil {
			_, err = f.Write(data[len(p.own[path]):])
			err = errors.Join(err, f.Close())
		}
	case k < 17 && own && p.own[path] != nil:
		s.How, s.Hash = "moved away", ""
		to, _ := p.path()
		if data = p.own[path]; to == path || p.own[to] == nil {
			return nil, nil
		}
		if err = os.Rename(name, p.file(to)); err == nil {
			list = append(list, saved{to, hashOf(data), s.Begin, time.Now().UnixNano(), "moved"})
			p.own[to], data = data, nil
		}
	case k < 18 && own:
		s.How, s.Hash, data = "deleted", "", nil
		if err = os.Remove(name); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	case k < 19 && own:
		s.How, data = "emptied", []byte{}
		s.Hash = hashOf(nil)
		err = os.WriteFile(name, nil, 0o600)
	default:
		return nil, nil
	}
	s.End = time.Now().UnixNano()
	if own {
		p.own[path] = data
	}
	return append(list, s), err
}

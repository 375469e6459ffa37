package users

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/repair"
)

// child is a process of one user. Its job is words that are separated by colons.
func child(ctx context.Context, job, dir string) error {
	words := strings.Split(job, ":")
	if n, err := strconv.ParseUint(os.Getenv("VARVE_UMASK"), 8, 32); err == nil {
		umask(int(n))
	}
	o := &varve.Options{SegmentSize: 1 << 20}
	switch words[0] {
	case "share":
		o.Shared = true
	case "repair":
		plan, err := varve.PlanRepair(ctx, dir, nil, varve.VerifyOptions{})
		if err == nil {
			_, err = plan.Apply(ctx)
		}
		return err
	case "migrate":
		_, err := varve.Migrate(ctx, dir, words[1], nil)
		return err
	case "restore":
		_, err := varve.Restore(ctx, dir, words[1], nil)
		return err
	case "save":
		return save(filepath.Join(dir, "memories", words[1]+".json"), words[2])
	}
	st, err := varve.Open(ctx, dir, o)
	if err != nil {
		return err
	}
	switch words[0] {
	case "work":
		err = work(ctx, st, words[1], words[2])
	case "check":
		err = check(ctx, st, words[1])
	case "rebuild":
		err = st.Admin().RebuildIndex(ctx)
	case "backup":
		_, err = st.Backup(ctx, filepath.Join(dir, "backups", words[1]), varve.BackupOptions{})
	case "backupto":
		_, err = st.Backup(ctx, words[1], varve.BackupOptions{})
	case "get":
		var m varve.Memory
		if m, err = st.Get(ctx, words[1]); err == nil {
			fmt.Println(m.Content)
		}
	case "verify":
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity > repair.Info {
				fmt.Println("verify:", f.Path, f.Heals, f.Next, f.Err, err)
			}
		}
		fmt.Println("health:", errors.Join(st.Health(ctx).Problems...))
	case "put":
		_, err = st.Put(ctx, varve.Memory{ID: words[1], Content: words[2]})
	}
	return errors.Join(err, st.Close())
}

// work puts memories and prints which were acknowledged, until it is killed.
func work(ctx context.Context, st *varve.Store, name, seed string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(n, 1))
	for i := 0; ; i++ {
		id := fmt.Sprintf("%s-%d", name, i)
		if _, err := st.Put(ctx, varve.Memory{ID: id, Content: "of " + id}); err != nil {
			return fmt.Errorf("put %s: %w", id, err)
		}
		fmt.Println(id)
		common := fmt.Sprintf("common-%d", r.IntN(commons))
		if _, err := st.Put(ctx, varve.Memory{ID: common, Content: "of " + id + strings.Repeat(" and more", r.IntN(50))}); err != nil {
			return fmt.Errorf("put %s: %w", common, err)
		}
		if r.IntN(10) == 0 {
			if err := st.Flush(ctx); err != nil {
				return fmt.Errorf("flush: %w", err)
			}
		}
	}
}

const commons = 5 // memories that all users write

// check checks that everything acknowledged is there, and that the store accepts a write and a flush.
func check(ctx context.Context, st *varve.Store, acked string) error {
	f, err := os.Open(acked)
	if err != nil {
		return err
	}
	defer f.Close()
	var wrong []error
	for in := bufio.NewScanner(f); in.Scan(); {
		id := in.Text()
		if m, err := st.Get(ctx, id); err != nil || m.Content != "of "+id {
			wrong = append(wrong, fmt.Errorf("get %s: %q, %w", id, m.Content, err))
		}
	}
	for i := range commons {
		if _, err := st.Get(ctx, fmt.Sprintf("common-%d", i)); err != nil && !errors.Is(err, varve.ErrNotFound) {
			wrong = append(wrong, fmt.Errorf("get common-%d: %w", i, err))
		}
	}
	if _, err := st.Put(ctx, varve.Memory{ID: fmt.Sprint("check-", os.Getuid()), Content: "of " + filepath.Base(acked)}); err != nil {
		wrong = append(wrong, fmt.Errorf("put: %w", err))
	}
	if err := st.Flush(ctx); err != nil {
		wrong = append(wrong, fmt.Errorf("flush: %w", err))
	}
	for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
		if err != nil || f.Severity > repair.Info {
			wrong = append(wrong, fmt.Errorf("verify: %v, %w", f, err))
		}
	}
	if h := st.Health(ctx); !h.OK {
		wrong = append(wrong, h.Problems...)
	}
	return errors.Join(wrong...)
}

// save saves as an editor does: it writes a new file and renames it over the old one.
func save(name, content string) error {
	var doc map[string]any
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &doc)
	}
	if err != nil {
		return err
	}
	doc["content"] = content
	if b, err = json.Marshal(doc); err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(name), ".save")
	if err := os.WriteFile(temp, b, 0o666); err != nil {
		return err
	}
	return os.Rename(temp, name)
}

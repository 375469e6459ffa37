package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// shared is an engine that more than one process may have open; Shared is its name.
type shared interface{ Shared() string }

const (
	processes = 4
	fourLasts = 5 * time.Second
)

// four notes what searches take in four processes at once, each of which has made one before.
func (r *result) four(name, dir string, stream uint64) error {
	type child struct {
		*exec.Cmd
		out   *bufio.Reader
		stop  func() error // its input ends
		start func() error
	}
	var all []child
	defer func() {
		for _, c := range all {
			_ = c.stop()
			_ = c.Wait()
		}
	}()
	for i := range processes {
		cmd := exec.Command(os.Args[0], "-worker", name, "-dir", dir, "-data", *data, "-seed", fmt.Sprint(*seed+stream+uint64(i)))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		all = append(all, child{cmd, bufio.NewReader(out), in.Close, func() error { _, err := in.Write([]byte("go\n")); return err }})
	}
	for _, c := range all {
		if _, err := c.out.ReadString('\n'); err != nil {
			return err
		}
	}
	for _, c := range all {
		if err := c.start(); err != nil {
			return err
		}
	}
	for _, c := range all {
		var took []time.Duration
		if err := json.NewDecoder(c.out).Decode(&took); err != nil {
			return err
		}
		r.took["four"] = append(r.took["four"], took...)
	}
	return nil
}

// work is what each of them does.
func work() (err error) {
	make := engines[*worker]
	if make == nil {
		return fmt.Errorf("engine %q", *worker)
	}
	t, err := newTexts(0)
	if err != nil {
		return err
	}
	e := make()
	if err := e.Open(*dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Search(t.query(), "", false); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	took := []time.Duration{}
	for end := time.Now().Add(fourLasts); time.Now().Before(end); {
		began := time.Now()
		if err := e.Search(t.query(), "", false); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	return json.NewEncoder(os.Stdout).Encode(took)
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// server is a Python program that searches in a FAISS file. A request is a line of JSON with the number of threads,
// the seconds and the name of a file of queries; the answer is a line of JSON with times and ids.
const server = `
import sys, json, time, faiss, numpy as np
index = faiss.read_index(sys.argv[1])
print(json.dumps({'version': faiss.__version__}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    faiss.omp_set_num_threads(ask['threads'])
    q = np.fromfile(ask['queries'], dtype='<f4').reshape(-1, index.d)
    times, ids, end, i = [], [], time.time() + ask['seconds'], 0
    while i < len(q) or time.time() < end:
        one = q[i % len(q):i % len(q) + 1]
        t = time.perf_counter()
        d, found = index.search(one, 10)
        times.append(time.perf_counter() - t)
        if i < len(q): ids.append(found[0].tolist())
        i += 1
    print(json.dumps({'times': times, 'ids': ids}), flush=True)
`

type faiss struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	version string
}

func startFAISS(file string) (*faiss, error) {
	f := &faiss{cmd: exec.Command("/usr/bin/python3", "-c", server, file)}
	f.cmd.Stderr = os.Stderr
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	var said struct{ Version string }
	if err := f.read(&said); err != nil {
		return nil, fmt.Errorf("FAISS does not answer (apt install python3-faiss): %w", err)
	}
	f.version = said.Version
	return f, nil
}

func (f *faiss) read(v any) error {
	line, err := f.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

func (f *faiss) search(threads int, seconds float64, queries string) (times []float64, ids [][]int64, err error) {
	ask, err := json.Marshal(map[string]any{"threads": threads, "seconds": seconds, "queries": queries})
	if err != nil {
		return nil, nil, err
	}
	if _, err := f.in.Write(append(ask, '\n')); err != nil {
		return nil, nil, err
	}
	var said struct {
		Times []float64
		IDs   [][]int64
	}
	err = f.read(&said)
	return said.Times, said.IDs, err
}

func (f *faiss) close() error {
	f.in.Close()
	return f.cmd.Wait()
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// client talks to a server over its standard streams. It does not parse the answers, because parsing would be the
// client's time.
type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

func start(ctx context.Context, env []string, command ...string) (*client, error) {
	c := &client{cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	c.cmd.Env = append(os.Environ(), env...)
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReaderSize(out, 1<<20)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = c.call("initialize",
		`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	if err == nil {
		_, err = io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return c, err
}

func (c *client) call(method, params string) ([]byte, error) {
	c.id++
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.id, method,
		params); err != nil {
		return nil, err
	}
	return c.out.ReadBytes('\n')
}

func (c *client) tool(name, args string) error {
	answer, err := c.call("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
	if err != nil {
		return err
	}
	if head := answer[:min(len(answer), 2000)]; bytes.Contains(head, []byte(`"error":`)) ||
		bytes.Contains(answer[max(0, len(answer)-100):], []byte(`"isError":true`)) {
		return fmt.Errorf("the server answered %s", head)
	}
	return nil
}

func (c *client) end() error {
	if err := c.in.Close(); err != nil {
		return err
	}
	return c.cmd.Wait()
}

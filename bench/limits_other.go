//go:build !linux

package main

import (
	"errors"
	"time"
)

var errLinux = errors.New("the limits are measured on Linux only")

func syncLimit(string, time.Duration) (burst, error) { return burst{}, errLinux }
func fileLimits(string, int, int, bool) (map[string]float64, error) {
	return nil, errLinux
}

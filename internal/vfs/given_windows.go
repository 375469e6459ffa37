package vfs

const nonblock = 0 // no file here waits to be opened

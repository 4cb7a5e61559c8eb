package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// logind stands in for systemd's, on a bus of its own at `-bus`: a kubelet asks it to be told of a shutdown, and
// on SIGUSR1 it is told. Nothing is shut down by it. It knows as much of D-Bus as a kubelet asks.
func logind() {
	bus := flag.String("bus", "", "where to listen")
	flag.Parse()
	listener, err := net.Listen("unix", *bus)
	if err != nil {
		fail(err)
	}
	var lock sync.Mutex
	var connected []net.Conn
	go func() {
		told := make(chan os.Signal, 1)
		signal.Notify(told, syscall.SIGUSR1)
		for range told {
			lock.Lock()
			for _, one := range connected {
				_, _ = one.Write(shutdown())
			}
			lock.Unlock()
		}
	}()
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail(err)
		}
		go func() {
			in := bufio.NewReader(connection)
			if !authenticated(in, connection) {
				_ = connection.Close()
				return
			}
			lock.Lock()
			connected = append(connected, connection)
			lock.Unlock()
			for {
				member, serial, err := call(in)
				if err != nil {
					return
				}
				lock.Lock()
				_, _ = connection.Write(answer(member, serial))
				lock.Unlock()
			}
		}()
	}
}

func authenticated(in *bufio.Reader, out io.Writer) bool {
	_, _ = in.ReadByte() // as the protocol wants it, a zero
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		said := "ERROR"
		switch words := strings.Fields(line); {
		case len(words) == 1 && words[0] == "AUTH":
			said = "REJECTED EXTERNAL"
		case len(words) > 1 && words[0] == "AUTH":
			said = "OK 0123456789abcdef0123456789abcdef"
		case len(words) == 1 && words[0] == "BEGIN":
			return true
		}
		if _, err := io.WriteString(out, said+"\r\n"); err != nil {
			return false
		}
	}
}

// call reads one message: the method that is called, and its number.
func call(in io.Reader) (member string, serial uint32, err error) {
	head := make([]byte, 16)
	if _, err = io.ReadFull(in, head); err != nil {
		return
	}
	body, serial := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	length := binary.LittleEndian.Uint32(head[12:])
	rest := make([]byte, (length+7)/8*8+body)
	if _, err = io.ReadFull(in, rest); err != nil {
		return
	}
	// A field begins at a multiple of 8: its number, the type of its value, the value. 3, a string: the member.
	if at := bytes.Index(rest[:length], []byte{3, 1, 's', 0}); at >= 0 {
		size := binary.LittleEndian.Uint32(rest[at+4:])
		member = string(rest[at+8 : at+8+int(size)])
	}
	return
}

func answer(member string, serial uint32) []byte {
	reply := field(5, "u", u32(serial))
	switch member {
	case "Hello":
		return message(2, text(":1.1"), reply, field(8, "g", kind("s")))
	case "Get": // InhibitDelayMaxUSec: a minute, as much as a kubelet may ask for
		value := append(pad(kind("t"), 8), u32(60_000_000)...)
		return message(2, append(value, u32(0)...), reply, field(8, "g", kind("v")))
	case "Inhibit": // its lock would be an open file; it closes the number that it gets, and there is none
		return message(2, u32(1<<30), reply, field(8, "g", kind("u")))
	default:
		return message(2, nil, reply)
	}
}

func shutdown() []byte {
	return message(4, u32(1),
		field(1, "o", text("/org/freedesktop/login1")),
		field(2, "s", text("org.freedesktop.login1.Manager")),
		field(3, "s", text("PrepareForShutdown")),
		field(7, "s", text("org.freedesktop.login1")),
		field(8, "g", kind("b")))
}

func message(of byte, body []byte, fields ...[]byte) []byte {
	var all []byte
	for _, one := range fields {
		all = append(pad(all, 8), one...)
	}
	found := append([]byte{'l', of, 1, 1}, u32(uint32(len(body)))...)
	found = append(append(found, u32(1)...), u32(uint32(len(all)))...)
	return append(pad(append(found, all...), 8), body...)
}

func field(number byte, of string, value []byte) []byte {
	return append(append([]byte{number}, kind(of)...), value...)
}

func kind(signature string) []byte {
	return append(append([]byte{byte(len(signature))}, signature...), 0)
}

func text(words string) []byte {
	return append(append(u32(uint32(len(words))), words...), 0)
}

func u32(number uint32) []byte {
	return binary.LittleEndian.AppendUint32(nil, number)
}

func pad(found []byte, to int) []byte {
	for len(found)%to != 0 {
		found = append(found, 0)
	}
	return found
}

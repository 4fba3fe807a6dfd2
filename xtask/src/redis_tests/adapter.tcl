# Read by Redis' test_helper.tcl behind its own support files: how its tests run against another server.
#
# Its units set how small collections are encoded in memory, so that each test runs once with every encoding. Here
# these settings are answered without a server, and the tests run with what the server does: another encoding must
# show no other replies.

namespace eval kreon {
    variable encodings {
        *-max-listpack-* *-max-ziplist-* *-max-intset-* list-compress-depth save appendonly rdb-key-save-delay
        rdbcompression
    }
    # What the server knows, asked for once, and what the present test wanted beyond that.
    variable commands {}
    variable unknown {}
}

# Whether a request is about encodings, and if so its reply in `reply`.
proc ::kreon::answer {method arguments reply} {
    upvar 1 $reply answer
    set sub [string tolower [lindex $arguments 0]]
    set name [string tolower [lindex $arguments 1]]
    switch -- [string tolower $method] {
        config {
            foreach pattern $::kreon::encodings {
                if {[string match $pattern $name]} {
                    set answer [expr {$sub eq {get} ? [list $name 0] : {OK}}]
                    return 1
                }
            }
        }
        debug {
            if {$sub in {quicklist-packed-threshold listpack-entries}} {
                set answer OK
                return 1
            }
        }
        function {
            # Before each unit; there are no functions.
            set answer OK
            return 1
        }
    }
    return 0
}

# Whether the server knows a command; methods of the client itself are none.
proc ::kreon::knows {id method} {
    if {[info command ::redis::__method__$method] ne {} || $::kreon::commands eq {asking}} {
        return 1
    }
    if {$::kreon::commands eq {}} {
        set ::kreon::commands asking
        set asked [redis $::host $::port]
        set ::kreon::commands [string tolower [$asked command list]]
        $asked close
    }
    return [expr {[string tolower $method] in $::kreon::commands}]
}

rename ::redis::__dispatch__ ::kreon::dispatch
proc ::redis::__dispatch__ {id method args} {
    if {!$::redis::deferred($id) && [::kreon::answer $method $args reply]} {
        return $reply
    }
    if {![::kreon::knows $id $method]} {
        set ::kreon::unknown [string tolower $method]
        if {$::redis::deferred($id)} {
            # Nobody may ever read the reply, but the test may wait for what it did.
            error "ERR unknown command '$method'"
        }
    }
    set code [catch {::kreon::dispatch $id $method {*}$args} reply]
    return -code $code $reply
}

# A test that failed half way leaves its connection in any state, which the next tests would fail by: they get a new
# one. And why it failed: commands that the server does not know.
rename ::test ::kreon::test
proc ::test {name code {okpattern undefined} {tags {}}} {
    set ::kreon::unknown {}
    set failed $::num_failed
    set result [uplevel 1 [list ::kreon::test $name $code $okpattern $tags]]
    if {$::num_failed > $failed} {
        if {$::kreon::unknown ne {}} {
            send_data_packet $::test_server_fd unknown $::kreon::unknown
        }
        catch {reconnect}
    }
    return $result
}

%% RabbitMQ's Erlang client. compat/matrix/playing.py describes the protocol with the harness.
-module(play).
-export([main/0]).
-include_lib("amqp_client/include/amqp_client.hrl").
-define(PATIENCE_MS, 15000).
%% Silence after which nothing more is expected.
-define(QUIET_MS, 300).

main() ->
    {ok, _} = application:ensure_all_started(amqp_client),
    lists:foreach(fun report/1, init:get_plain_arguments()),
    halt(0).

%% Play a scenario in a process of its own, whose inbox ends with it.
report(Scenario) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit(outcome(list_to_existing_atom(Scenario))) end),
    receive {'DOWN', Ref, process, Pid, Outcome} -> io:format("RESULT ~s ~ts~n", [Scenario, Outcome]) end.

outcome(Scenario) ->
    try scenario(Scenario) of
        _ -> "ok"
    catch
        _:Reason -> re:replace(io_lib:format("failed ~0tp", [Reason]), "\\s+", " ", [global, {return, list}])
    after
        [catch amqp_connection:close(Connection, ?PATIENCE_MS) || Connection <- opened_here()]
    end.

%% Return a unique name of a queue or exchange.
name(Stem) -> iolist_to_binary([os:getenv("PREFIX"), ".", Stem]).

same(Value, Value) -> ok;
same(Came, Expected) -> error({got, Came, instead_of, Expected}).

%% Request a restart of the broker ("RESTART") or a close of all connections ("CLOSE").
ask(What) ->
    io:format("~s~n", [What]),
    same(io:get_line(""), "DONE\n").

%% The connections of the scenario that is played.
opened_here() -> case get(connections) of undefined -> []; Connections -> Connections end.

parameters(Variable) ->
    {ok, Parameters} = amqp_uri:parse(os:getenv(Variable)),
    Parameters.

connect() -> connect(parameters("AMQP_URL")).

connect(Parameters) ->
    case amqp_connection:start(Parameters) of
        {ok, Connection} ->
            put(connections, [Connection | opened_here()]),
            Connection;
        {error, Reason} -> error(Reason)
    end.

channel(Connection) ->
    {ok, Channel} = amqp_connection:open_channel(Connection),
    Channel.

channel() -> channel(connect()).

call(Channel, Method) -> amqp_channel:call(Channel, Method).

%% Expect the broker to close the channel of the work with this code.
refused(Code, Work) ->
    try Work() of
        Value -> error({not_refused, Value})
    catch
        exit:{{shutdown, {server_initiated_close, Came, _}}, _} -> same(Came, Code)
    end.

%% Declare an exclusive queue.
queue(Channel, Stem) -> queue(Channel, Stem, []).

queue(Channel, Stem, Arguments) ->
    Name = name(Stem),
    #'queue.declare_ok'{} = call(Channel, #'queue.declare'{queue = Name, exclusive = true, arguments = Arguments}),
    Name.

publish(Channel, Queue, Body) -> publish(Channel, Queue, Body, #'P_basic'{}).

publish(Channel, Queue, Body, Properties) -> publish(Channel, <<>>, Queue, Body, Properties).

publish(Channel, Exchange, Key, Body, Properties) ->
    Method = #'basic.publish'{exchange = Exchange, routing_key = Key},
    ok = amqp_channel:cast(Channel, Method, #amqp_msg{props = Properties, payload = Body}).

confirmed(Channel, Queue, Bodies) ->
    #'confirm.select_ok'{} = call(Channel, #'confirm.select'{}),
    [publish(Channel, Queue, Body, #'P_basic'{delivery_mode = 2}) || Body <- Bodies],
    same(amqp_channel:wait_for_confirms(Channel, {?PATIENCE_MS, millisecond}), true).

%% Consume into the inbox of this process; return the consumer's tag.
consume(Channel, Queue) -> consume(Channel, Queue, #'basic.consume'{no_ack = true}).

consume(Channel, Queue, Method) ->
    #'basic.consume_ok'{consumer_tag = Tag} =
        amqp_channel:subscribe(Channel, Method#'basic.consume'{queue = Queue}, self()),
    Tag.

take(Tag) ->
    receive {#'basic.deliver'{consumer_tag = Tag} = Delivery, Message} -> {Delivery, Message}
    after ?PATIENCE_MS -> error(no_message)
    end.

bodies(Tag, Count) -> [Body || _ <- lists:seq(1, Count), {_, #amqp_msg{payload = Body}} <- [take(Tag)]].

no_more(Tag) ->
    receive {#'basic.deliver'{consumer_tag = Tag}, Message} -> error({unexpected, Message})
    after ?QUIET_MS -> ok
    end.

%% Return the reason for which a connection ends that is watched already.
end_of(Connection, Ref) ->
    receive {'DOWN', Ref, process, Connection, Reason} -> Reason
    after ?PATIENCE_MS -> error(still_open)
    end.

count(Channel, Queue) ->
    Declared = call(Channel, #'queue.declare'{queue = Queue, passive = true}),
    Declared#'queue.declare_ok'.message_count.

scenario(connect) ->
    Connection = connect(),
    Channel = channel(Connection),
    Queue = queue(Channel, "connect"),
    Headers = [{<<"n">>, signedint, 1}],
    Properties = #'P_basic'{content_type = <<"text/plain">>, message_id = <<"m1">>, headers = Headers},
    publish(Channel, Queue, <<"hello">>, Properties),
    {_, #amqp_msg{payload = Body, props = Came}} = take(consume(Channel, Queue)),
    same({Body, Came}, {<<"hello">>, Properties}),
    ok = amqp_channel:close(Channel),
    ok = amqp_connection:close(Connection);
scenario(topology) ->
    Connection = connect(),
    Channel = channel(Connection),
    [First, Second, Queue] = [name(Stem) || Stem <- ["events", "archive", "topology"]],
    call(Channel, #'exchange.declare'{exchange = First, type = <<"topic">>, durable = true}),
    call(Channel, #'exchange.declare'{exchange = Second, type = <<"fanout">>, durable = true}),
    call(Channel, #'queue.declare'{queue = Queue, durable = true}),
    call(Channel, #'exchange.bind'{source = First, destination = Second, routing_key = <<"order.#">>}),
    call(Channel, #'queue.bind'{queue = Queue, exchange = Second}),
    publish(Channel, First, <<"order.created">>, <<"1">>, #'P_basic'{}),
    call(Channel, #'exchange.unbind'{source = First, destination = Second, routing_key = <<"order.#">>}),
    publish(Channel, First, <<"order.created">>, <<"2">>, #'P_basic'{}),
    call(Channel, #'queue.unbind'{queue = Queue, exchange = Second}),
    same(call(Channel, #'queue.purge'{queue = Queue}), #'queue.purge_ok'{message_count = 1}),
    refused(404, fun() -> count(channel(Connection), name("missing")) end),
    refused(406, fun() -> call(channel(Connection), #'queue.declare'{queue = Queue}) end),
    call(Channel, #'queue.delete'{queue = Queue}),
    [call(Channel, #'exchange.delete'{exchange = Exchange}) || Exchange <- [First, Second]];
scenario(confirms) ->
    Channel = channel(),
    confirmed(Channel, queue(Channel, "confirms"), lists:duplicate(100, <<"x">>));
scenario(returns) ->
    Channel = channel(),
    ok = amqp_channel:register_return_handler(Channel, self()),
    Method = #'basic.publish'{routing_key = name("nobody"), mandatory = true},
    ok = amqp_channel:call(Channel, Method, #amqp_msg{payload = <<"lost">>}),
    receive {#'basic.return'{reply_code = Code, reply_text = Text}, _} -> same({Code, Text}, {312, <<"NO_ROUTE">>})
    after ?PATIENCE_MS -> error(no_return)
    end;
scenario(consume) ->
    Channel = channel(),
    Queue = queue(Channel, "consume"),
    [publish(Channel, Queue, integer_to_binary(Number)) || Number <- lists:seq(0, 9)],
    call(Channel, #'basic.qos'{prefetch_count = 3}),
    Tag = consume(Channel, Queue, #'basic.consume'{}),
    [_, _, {#'basic.deliver'{delivery_tag = Third}, _}] = [take(Tag) || _ <- lists:seq(1, 3)],
    no_more(Tag),
    amqp_channel:cast(Channel, #'basic.ack'{delivery_tag = Third, multiple = true}),
    same(bodies(Tag, 3), [<<"3">>, <<"4">>, <<"5">>]);
scenario(requeue) ->
    Channel = channel(),
    Queue = queue(Channel, "requeue"),
    Tag = consume(Channel, Queue, #'basic.consume'{}),
    publish(Channel, Queue, <<"again">>),
    {#'basic.deliver'{delivery_tag = First, redelivered = Before}, _} = take(Tag),
    amqp_channel:cast(Channel, #'basic.nack'{delivery_tag = First, requeue = true}),
    {#'basic.deliver'{redelivered = After}, _} = take(Tag),
    same({Before, After}, {false, true});
scenario(dead_letter) ->
    Channel = channel(),
    Work = name("work"),
    Waiting = queue(Channel, "waiting", [{<<"x-message-ttl">>, signedint, 200} | to_queue(Work)]),
    Work = queue(Channel, "work", to_queue(Waiting)),
    Tag = consume(Channel, Work, #'basic.consume'{}),
    publish(Channel, Work, <<"try">>),
    {#'basic.deliver'{delivery_tag = First}, _} = take(Tag),
    amqp_channel:cast(Channel, #'basic.reject'{delivery_tag = First, requeue = false}),
    {_, #amqp_msg{props = #'P_basic'{headers = Headers}}} = take(Tag),
    {_, array, Deaths} = lists:keyfind(<<"x-death">>, 1, Headers),
    Told = [{value(<<"queue">>, Death), value(<<"reason">>, Death), value(<<"count">>, Death)} || {table, Death} <- Deaths],
    same(Told, [{Waiting, <<"expired">>, 1}, {Work, <<"rejected">>, 1}]);
scenario(ttl) ->
    Channel = channel(),
    Dead = queue(Channel, "dead"),
    Own = queue(Channel, "own", to_queue(Dead)),
    All = queue(Channel, "all", [{<<"x-message-ttl">>, signedint, 200} | to_queue(Dead)]),
    publish(Channel, Own, <<"own">>, #'P_basic'{expiration = <<"200">>}),
    publish(Channel, All, <<"all">>),
    same(lists:sort(bodies(consume(Channel, Dead), 2)), [<<"all">>, <<"own">>]),
    same([count(Channel, Queue) || Queue <- [Own, All]], [0, 0]);
scenario(priority) ->
    Channel = channel(),
    Queue = queue(Channel, "priority", [{<<"x-max-priority">>, signedint, 5}]),
    [publish(Channel, Queue, integer_to_binary(Level), #'P_basic'{priority = Level}) || Level <- [1, 5, 3]],
    same(bodies(consume(Channel, Queue), 3), [<<"5">>, <<"3">>, <<"1">>]);
scenario(rpc) ->
    Connection = connect(),
    [Channel, Server] = [channel(Connection), channel(Connection)],
    Queue = queue(Channel, "rpc"),
    Questions = consume(Server, Queue),
    Answers = consume(Channel, <<"amq.rabbitmq.reply-to">>),
    Asked = #'P_basic'{reply_to = <<"amq.rabbitmq.reply-to">>, correlation_id = <<"7">>},
    publish(Channel, Queue, <<"question">>, Asked),
    {_, #amqp_msg{payload = Question, props = Properties}} = take(Questions),
    #'P_basic'{reply_to = ReplyTo, correlation_id = Id} = Properties,
    publish(Server, ReplyTo, string:uppercase(Question), #'P_basic'{correlation_id = Id}),
    {_, #amqp_msg{payload = Answer, props = #'P_basic'{correlation_id = Came}}} = take(Answers),
    same({Answer, Came}, {<<"QUESTION">>, <<"7">>});
scenario(server_named) ->
    Channel = channel(),
    #'queue.declare_ok'{queue = Queue} = call(Channel, #'queue.declare'{exclusive = true}),
    <<"amq.gen-", _/binary>> = Queue,
    Other = channel(),
    refused(405, fun() -> consume(Other, Queue) end);
scenario(cancel) ->
    Channel = channel(),
    Queue = queue(Channel, "cancel"),
    Tag = consume(Channel, Queue),
    call(Channel, #'queue.delete'{queue = Queue}),
    receive #'basic.cancel'{consumer_tag = Tag} -> ok
    after ?PATIENCE_MS -> error(not_cancelled)
    end;
scenario(stream) ->
    Channel = channel(),
    Queue = name("stream"),
    Arguments = [{<<"x-queue-type">>, longstr, <<"stream">>}],
    call(Channel, #'queue.declare'{queue = Queue, durable = true, arguments = Arguments}),
    Bodies = [integer_to_binary(Number) || Number <- lists:seq(0, 9)],
    confirmed(Channel, Queue, Bodies),
    call(Channel, #'basic.qos'{prefetch_count = 20}),
    First = #'basic.consume'{arguments = [{<<"x-stream-offset">>, longstr, <<"first">>}]},
    same(bodies(consume(Channel, Queue, First), 10), Bodies),
    Fifth = #'basic.consume'{arguments = [{<<"x-stream-offset">>, long, 5}]},
    same(bodies(consume(Channel, Queue, Fifth), 5), lists:nthtail(5, Bodies)),
    call(Channel, #'queue.delete'{queue = Queue});
scenario(large) ->
    Channel = channel(),
    Queue = queue(Channel, "large"),
    Body = binary:copy(<<"0123456789abcdef">>, 1 bsl 20),
    publish(Channel, Queue, Body),
    [Came] = bodies(consume(Channel, Queue), 1),
    same(Came =:= Body, true);
scenario(tls) ->
    Parameters = parameters("AMQPS_URL"),
    Checked = [{verify, verify_peer}, {server_name_indication, "localhost"}],
    Trusting = Parameters#amqp_params_network{ssl_options = [{cacertfile, os:getenv("CA_FILE")} | Checked]},
    ok = amqp_connection:close(connect(Trusting)),
    #{cert := Other} = public_key:pkix_test_root_cert("another authority", []),
    Doubting = Parameters#amqp_params_network{ssl_options = [{cacerts, [Other]} | Checked]},
    {error, {tls_alert, {unknown_ca, _}}} = amqp_connection:start(Doubting);
scenario(wrong_password) ->
    Parameters = parameters("AMQP_URL"),
    {error, {auth_failure, Text}} = amqp_connection:start(Parameters#amqp_params_network{password = <<"wrong">>}),
    same(string:find(Text, "ACCESS_REFUSED") =/= nomatch, true);
scenario(forced_close) ->
    Connection = connect(),
    Ref = monitor(process, Connection),
    ask("CLOSE"),
    {shutdown, {server_initiated_close, Code, _}} = end_of(Connection, Ref),
    same(Code, 320);
scenario(reconnect) ->
    Connection = connect(),
    Channel = channel(Connection),
    Queue = name("reconnect"),
    call(Channel, #'queue.declare'{queue = Queue, durable = true}),
    confirmed(Channel, Queue, [<<"kept">>]),
    Ref = monitor(process, Connection),
    ask("RESTART"),
    end_of(Connection, Ref),
    Again = channel(),
    same(bodies(consume(Again, Queue), 1), [<<"kept">>]),
    call(Again, #'queue.delete'{queue = Queue}).

to_queue(Queue) ->
    [{<<"x-dead-letter-exchange">>, longstr, <<>>}, {<<"x-dead-letter-routing-key">>, longstr, Queue}].

value(Name, Table) ->
    {_, _, Value} = lists:keyfind(Name, 1, Table),
    Value.

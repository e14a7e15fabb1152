package io.github.amqpbroker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URLDecoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** The HTTP API of a broker, with as much of JSON as it needs. */
final class HttpApi {
    private static final Pattern REASON = Pattern.compile("\"reason\":\"([^\"\\\\]*(?:\\\\.[^\"\\\\]*)*)\"");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|.)");

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String managementUrl;
    private final String login;

    HttpApi(String url, String managementUrl) {
        this.managementUrl = managementUrl;
        var user = URLDecoder.decode(URI.create(url).getRawUserInfo(), StandardCharsets.UTF_8);
        this.login = "Basic " + Base64.getEncoder().encodeToString(user.getBytes(StandardCharsets.UTF_8));
    }

    /** Sends a request, and returns the answer. Throws IllegalArgumentException with the broker's reason. */
    String request(String method, String path, Map<String, ?> body) {
        if (managementUrl.isEmpty()) {
            throw new IllegalStateException("the HTTP API is not served: an option of the broker says so");
        }
        var request = HttpRequest.newBuilder(URI.create(managementUrl + path))
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(json(body)))
                .header("Authorization", login)
                .build();
        try {
            var answer = client.send(request, BodyHandlers.ofString());
            if (answer.statusCode() >= 300) {
                throw new IllegalArgumentException(reason(answer.body()));
            }
            return answer.body();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(error);
        }
    }

    String request(String method, String path) {
        return request(method, path, null);
    }

    private static String reason(String answer) {
        var found = REASON.matcher(answer);
        return found.find() ? ESCAPE.matcher(found.group(1)).replaceAll(HttpApi::unescaped) : answer;
    }

    private static String unescaped(MatchResult escape) {
        var unit = escape.group(1);
        var text = unit == null ? escape.group().translateEscapes() : Character.toString(Integer.parseInt(unit, 16));
        return Matcher.quoteReplacement(text);
    }

    /** Returns a whole number of an answer. */
    static long number(String answer, String field) {
        var found = Pattern.compile("\"" + field + "\":(\\d+)").matcher(answer);
        if (!found.find()) {
            throw new IllegalStateException("the broker's answer has no " + field + ": " + answer);
        }
        return Long.parseLong(found.group(1));
    }

    /** Returns maps, collections, numbers, booleans and null as JSON, and everything else as a text. */
    static String json(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream()
                    .map(entry -> quoted(entry.getKey().toString()) + ":" + json(entry.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Collection<?> items) {
            return items.stream().map(HttpApi::json).collect(Collectors.joining(",", "[", "]"));
        }
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        return quoted(value.toString());
    }

    private static String quoted(String text) {
        return text.chars()
                .mapToObj(unit -> unit < ' ' || unit == '"' || unit == '\\'
                        ? String.format("\\u%04x", unit)
                        : String.valueOf((char) unit))
                .collect(Collectors.joining("", "\"", "\""));
    }
}

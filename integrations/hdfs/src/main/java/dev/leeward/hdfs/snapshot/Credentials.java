package dev.leeward.hdfs.snapshot;

import dev.leeward.hdfs.settings.Property;
import dev.leeward.hdfs.settings.Settings;
import dev.leeward.hdfs.settings.SettingsException;
import dev.leeward.hdfs.settings.SettingsReader;
import java.io.IOException;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.Arrays;

/**
 * The token of a connection, and its client with the trusted certificates. Operators replace the files of both while
 * the NameNode runs, so a file is read again after a request failed because of it. An unusable file changes nothing.
 */
final class Credentials {

    private final Settings.Connection connection;
    private volatile String token;
    private volatile HttpClient client;
    /** Content of the file of certificates, of which {@link #client} is; null without a file. */
    private byte[] authority;

    /**
     * Reads the files of a connection.
     *
     * @throws ControllerException if the file of certificates cannot be used
     */
    Credentials(Settings.Connection connection) throws ControllerException {
        this.connection = connection;
        token = connection.token();
        try {
            authority = connection.authority() == null ? null : Files.readAllBytes(Path.of(connection.authority()));
            client = client(authority);
        } catch (IOException | GeneralSecurityException e) {
            throw new ControllerException(Failure.TLS, unusable(e));
        }
    }

    private HttpClient client(byte[] certificates) throws IOException, GeneralSecurityException {
        HttpClient.Builder builder = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .followRedirects(HttpClient.Redirect.NEVER)
                // Each request has a deadline of its own for the connection and the whole answer.
                .connectTimeout(Duration.ofMillis(Controller.WHOLE * connection.deadlineMs()));
        if (certificates != null) {
            builder.sslContext(Trust.in(certificates));
        }
        return builder.build();
    }

    /** The token, or null. */
    String token() {
        return token;
    }

    /** The client. */
    HttpClient client() {
        return client;
    }

    /** Reads the token again. Returns an empty text, or why its file is unusable. */
    String readTokenAgain() {
        if (connection.tokenFile() != null) {
            try {
                token = SettingsReader.tokenIn(connection.tokenFile());
            } catch (SettingsException e) {
                return "; " + e.getMessage();
            }
        }
        return "";
    }

    /** Reads the certificates again. Returns an empty text, or why their file is unusable. */
    synchronized String readCertificatesAgain() {
        if (authority != null) {
            try {
                byte[] read = Files.readAllBytes(Path.of(connection.authority()));
                if (!Arrays.equals(read, authority)) {
                    client = client(read);
                    authority = read;
                }
            } catch (IOException | GeneralSecurityException e) {
                return "; " + unusable(e);
            }
        }
        return "";
    }

    private String unusable(Exception e) {
        return Property.TLS_CA.key() + ": `" + connection.authority() + "`: " + e.getMessage();
    }
}

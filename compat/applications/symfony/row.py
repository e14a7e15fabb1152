from compat.applications.application import Application

APPLICATION = Application(
    name="symfony",
    language="PHP",
    version="5.4",  # Debian's
    command=("sh", "jobs.sh"),
    install=(("php", "jobs.php", "cache:clear"),),
    programs=(
        ("php", "php-cli"),
        ("/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php", "php-symfony-framework-bundle"),
        ("/usr/share/php/Symfony/Component/Messenger/autoload.php", "php-symfony-messenger"),
        ("/usr/share/php/Symfony/Component/Messenger/Bridge/Amqp/autoload.php", "php-symfony-amqp-messenger"),
        ("/usr/share/php/Symfony/Component/Console/autoload.php", "php-symfony-console"),
        ("/usr/share/php/Symfony/Component/Yaml/autoload.php", "php-symfony-yaml"),
        ("php-amqp", "php-amqp"),
    ),
    refusal=r'\d{3}, message: [A-Z_]+ - [^"\n]*[^"\s]',
)
